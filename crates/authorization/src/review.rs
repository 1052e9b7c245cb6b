//! Encodes and decodes the webhook's requests and responses: `SubjectAccessReview`
//! (<https://kubernetes.io/docs/reference/kubernetes-api/authorization-resources/subject-access-review-v1/>).

use pintle_auth::authz::{Attributes, Selectors};
use pintle_machinery::{
    Value, ValueExt,
    selectors::{FieldOperator, FieldTerm, LabelOperator, LabelRequirement},
};
use pintle_webhook::{CLIENT_SCHEME, FieldType, ReviewKind};
use serde::Serialize;
use std::collections::BTreeMap;

/// A version of `SubjectAccessReview`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the API's own")]
pub enum ReviewVersion {
    V1,
    V1beta1,
}

impl ReviewVersion {
    /// The version with this name.
    pub fn of(name: &str) -> Option<ReviewVersion> {
        match name {
            "v1" => Some(ReviewVersion::V1),
            "v1beta1" => Some(ReviewVersion::V1beta1),
            _ => None,
        }
    }
}

/// The spec of the review. Serializes as that of v1.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReviewSpec<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) resource_attributes: Option<ResourceAttributes<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) non_resource_attributes: Option<NonResourceAttributes<'a>>,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) user: &'a str,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub(crate) groups: &'a [String],
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) extra: &'a BTreeMap<String, Vec<String>>,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) uid: &'a str,
}

/// The spec of the review in v1beta1.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BetaReviewSpec<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_attributes: Option<&'a ResourceAttributes<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    non_resource_attributes: Option<&'a NonResourceAttributes<'a>>,
    #[serde(skip_serializing_if = "str::is_empty")]
    user: &'a str,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    group: &'a [String],
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    extra: &'a BTreeMap<String, Vec<String>>,
    #[serde(skip_serializing_if = "str::is_empty")]
    uid: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ResourceAttributes<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) namespace: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) verb: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) group: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) version: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) resource: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) subresource: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) field_selector: Option<SelectorAttributes<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) label_selector: Option<SelectorAttributes<'a>>,
}

/// A selector with at least one requirement.
#[derive(Serialize)]
pub(crate) struct SelectorAttributes<'a> {
    pub(crate) requirements: Vec<SelectorRequirement<'a>>,
}

#[derive(Serialize)]
pub(crate) struct SelectorRequirement<'a> {
    pub(crate) key: &'a str,
    pub(crate) operator: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) values: Vec<&'a str>,
}

#[derive(Serialize)]
pub(crate) struct NonResourceAttributes<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) path: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) verb: &'a str,
}

impl<'a> ReviewSpec<'a> {
    pub(crate) fn of(attributes: &Attributes<'a>) -> ReviewSpec<'a> {
        let Attributes { user, verb, path, .. } = *attributes;
        let of_resource = attributes.is_resource_request.then(|| {
            let selectors = attributes.selectors;
            ResourceAttributes {
                namespace: attributes.namespace,
                verb,
                group: attributes.group,
                version: attributes.version,
                resource: attributes.resource,
                subresource: attributes.subresource,
                name: attributes.name,
                field_selector: selectors.and_then(of_fields),
                label_selector: selectors.and_then(of_labels),
            }
        });
        let of_path = (!attributes.is_resource_request).then_some(NonResourceAttributes { path, verb });
        ReviewSpec {
            resource_attributes: of_resource,
            non_resource_attributes: of_path,
            user: &user.name,
            groups: &user.groups,
            extra: &user.extra,
            uid: &user.uid,
        }
    }
}

fn of_fields(selectors: &Selectors) -> Option<SelectorAttributes<'_>> {
    let requirements = selectors.field_terms.iter().map(|FieldTerm { field, operator, value }| {
        let operator = match operator {
            FieldOperator::Equals => "In",
            FieldOperator::NotEquals => "NotIn",
        };
        SelectorRequirement { key: field, operator, values: vec![value] }
    });
    some(requirements.collect())
}

fn of_labels(selectors: &Selectors) -> Option<SelectorAttributes<'_>> {
    let requirements = selectors.label_requirements.iter().filter_map(|requirement: &LabelRequirement| {
        let operator = match requirement.operator() {
            LabelOperator::Equals | LabelOperator::DoubleEquals | LabelOperator::In => "In",
            LabelOperator::NotEquals | LabelOperator::NotIn => "NotIn",
            LabelOperator::Exists => "Exists",
            LabelOperator::DoesNotExist => "DoesNotExist",
            // Left out: the review then requests more objects, never fewer.
            LabelOperator::GreaterThan | LabelOperator::LessThan => return None,
        };
        let values = requirement.given_values().iter().map(String::as_str).collect();
        Some(SelectorRequirement { key: requirement.key(), operator, values })
    });
    some(requirements.collect())
}

fn some(requirements: Vec<SelectorRequirement<'_>>) -> Option<SelectorAttributes<'_>> {
    (!requirements.is_empty()).then_some(SelectorAttributes { requirements })
}

const KIND: &str = "SubjectAccessReview";

impl ReviewVersion {
    fn review_kind(self) -> ReviewKind {
        const VERSIONS: &[&str] = &["authorization.k8s.io/v1", "authorization.k8s.io/v1beta1"];
        const STATUS: FieldType = FieldType::Object(
            "SubjectAccessReviewStatus",
            &[
                ("allowed", FieldType::Bool),
                ("denied", FieldType::Bool),
                ("reason", FieldType::Text),
                ("evaluationError", FieldType::Text),
            ],
        );
        let api_version = match self {
            ReviewVersion::V1 => "authorization.k8s.io/v1",
            ReviewVersion::V1beta1 => "authorization.k8s.io/v1beta1",
        };
        ReviewKind {
            kind: KIND,
            api_version,
            other_versions: VERSIONS,
            scheme: CLIENT_SCHEME,
            status: STATUS,
        }
    }

    /// The body of a request, made from the JSON of its spec.
    pub(crate) fn question(self, spec: &[u8]) -> Vec<u8> {
        let ReviewKind { kind, api_version, .. } = self.review_kind();
        let head = format!(r#"{{"kind":"{kind}","apiVersion":"{api_version}","metadata":{{}},"spec":"#);
        [head.as_bytes(), spec, br#","status":{"allowed":false}}"#, b"\n"].concat()
    }

    /// The JSON of a spec, with this version's field names.
    pub(crate) fn spec(self, spec: &ReviewSpec<'_>) -> serde_json::Result<Vec<u8>> {
        match self {
            ReviewVersion::V1 => serde_json::to_vec(spec),
            ReviewVersion::V1beta1 => {
                let ReviewSpec { resource_attributes, non_resource_attributes, user, groups, extra, uid } =
                    spec;
                serde_json::to_vec(&BetaReviewSpec {
                    resource_attributes: resource_attributes.as_ref(),
                    non_resource_attributes: non_resource_attributes.as_ref(),
                    user,
                    group: groups,
                    extra,
                    uid,
                })
            }
        }
    }

    /// The status in a response.
    pub(crate) fn status(self, answer: &Value) -> Result<ReviewStatus, String> {
        self.review_kind().check(answer)?;
        Ok(ReviewStatus {
            allowed: answer.bool_at("status.allowed"),
            denied: answer.bool_at("status.denied"),
            reason: answer.str_at("status.reason").into(),
        })
    }
}

/// The relevant fields of the response's status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReviewStatus {
    pub(crate) allowed: bool,
    pub(crate) denied: bool,
    pub(crate) reason: Box<str>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::{UserInfo, json};

    #[test]
    fn questions_are_reviews() {
        let user = UserInfo {
            name: "jane".to_owned(),
            uid: "u".to_owned(),
            groups: vec!["devs".to_owned()],
            extra: [("scopes".to_owned(), vec!["view".to_owned()])].into(),
        };
        let mut selectors = Selectors::parse("a=b,c!=d", "e in (h,f),g>1");
        // Values of an access review keep their order.
        let values = ["n", "m", "n"].map(str::to_owned).into();
        selectors.label_requirements.push(LabelRequirement::new("k", LabelOperator::NotIn, values).unwrap());
        let attributes = Attributes {
            version: "v1",
            resource: "pods",
            namespace: "shop",
            selectors: Some(&selectors),
            ..Attributes::of(&user, "list")
        };
        let spec = ReviewSpec::of(&attributes);
        let body = |version: ReviewVersion| -> Value {
            serde_json::from_slice(&version.question(&version.spec(&spec).unwrap())).unwrap()
        };
        let expected = json!({
            "kind": KIND,
            "apiVersion": "authorization.k8s.io/v1",
            "metadata": {},
            "spec": {
                "resourceAttributes": {
                    "namespace": "shop", "verb": "list", "version": "v1", "resource": "pods",
                    "fieldSelector": {"requirements": [
                        {"key": "a", "operator": "In", "values": ["b"]},
                        {"key": "c", "operator": "NotIn", "values": ["d"]},
                    ]},
                    "labelSelector": {"requirements": [
                        {"key": "e", "operator": "In", "values": ["f", "h"]},
                        {"key": "k", "operator": "NotIn", "values": ["n", "m", "n"]},
                    ]},
                },
                "user": "jane", "groups": ["devs"], "extra": {"scopes": ["view"]}, "uid": "u",
            },
            "status": {"allowed": false},
        });
        assert_eq!(body(ReviewVersion::V1), expected);
        let beta = body(ReviewVersion::V1beta1);
        assert_eq!(beta["apiVersion"], "authorization.k8s.io/v1beta1");
        assert_eq!(beta["spec"]["group"], json!(["devs"]));
        assert!(beta["spec"].get("groups").is_none());
        let text = String::from_utf8(ReviewVersion::V1beta1.spec(&spec).unwrap()).unwrap();
        assert!(
            text.ends_with(r#","user":"jane","group":["devs"],"extra":{"scopes":["view"]},"uid":"u"}"#),
            "the fields have the order of the type: {text}"
        );
        let path = Attributes { path: "/x", is_resource_request: false, ..Attributes::of(&user, "get") };
        let spec = Value::from(serde_json::to_value(ReviewSpec::of(&path)).unwrap());
        assert_eq!(spec["nonResourceAttributes"], json!({"path": "/x", "verb": "get"}));
        assert!(spec.get("resourceAttributes").is_none());
    }

    #[test]
    fn answers_are_reviews_of_the_same_version() {
        let answer = json!({
            "kind": KIND, "apiVersion": "authorization.k8s.io/v1", "status": {"allowed": true, "reason": "so"},
        });
        let status = ReviewStatus { allowed: true, denied: false, reason: "so".into() };
        assert_eq!(ReviewVersion::V1.status(&answer), Ok(status.clone()));
        assert!(ReviewVersion::V1beta1.status(&answer).is_err());
        let misspelt = json!({"status": {"denied": "true"}});
        assert!(ReviewVersion::V1.status(&misspelt).is_err(), "a policy that fails closed denies");
        let unnamed = json!({"status": {"allowed": true, "reason": "so"}});
        assert_eq!(ReviewVersion::V1.status(&unnamed), Ok(status));
    }
}
