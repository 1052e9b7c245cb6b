//! Builds the request to a webhook: an `AdmissionReview`
//! (<https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#request>).

use bytes::Bytes;
use pintle_admission::{AdmissionRequest, Endpoint};
use pintle_machinery::{
    GroupVersionKind, GroupVersionResource, UserInfo, Value, ValueExt,
    codec::json::{ObjectWriter, encode_any, encode_to, write_object},
    json,
};
use pintle_schema::Schema;

/// A version of `AdmissionReview`. Both have the same fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReviewVersion {
    /// `v1`
    V1,
    /// `v1beta1`
    V1beta1,
}

impl ReviewVersion {
    /// The first of the webhook's review versions that this server supports.
    pub(super) fn choose<'v>(mut versions: impl Iterator<Item = &'v str>) -> Option<ReviewVersion> {
        versions.find_map(|version| match version {
            "v1" => Some(ReviewVersion::V1),
            "v1beta1" => Some(ReviewVersion::V1beta1),
            _ => None,
        })
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            ReviewVersion::V1 => "v1",
            ReviewVersion::V1beta1 => "v1beta1",
        }
    }
}

/// The JSON of a request's objects in the version that a webhook asks for; `None` for an absent one.
#[derive(Debug, Default)]
pub(super) struct Objects {
    pub(super) object: Option<Vec<u8>>,
    pub(super) old_object: Option<Vec<u8>>,
}

/// Builds the JSON of a review. `requested` is the endpoint of the request, `matched` the one that the webhook's rules
/// name.
pub(super) fn review(
    version: ReviewVersion,
    uid: &str,
    request: &AdmissionRequest<'_>,
    requested: &Endpoint,
    matched: &Endpoint,
    objects: &Objects,
) -> Bytes {
    let size = |object: &Option<Vec<u8>>| object.as_ref().map_or(4, Vec::len);
    let mut out = Vec::with_capacity(1024 + size(&objects.object) + size(&objects.old_object));
    write_object(&mut out, |review| {
        review.text("kind", "AdmissionReview");
        review.text("apiVersion", &format!("admission.k8s.io/{}", version.name()));
        review.object("request", |of_request| {
            of_request.text("uid", uid);
            write_kind(of_request, "kind", &matched.kind);
            write_resource(of_request, "resource", &matched.resource);
            of_request.text_if_any("subResource", request.subresource);
            write_kind(of_request, "requestKind", &requested.kind);
            write_resource(of_request, "requestResource", &requested.resource);
            of_request.text_if_any("requestSubResource", request.subresource);
            of_request.text_if_any("name", request.name);
            of_request.text_if_any("namespace", request.namespace);
            of_request.text_if_any("operation", request.operation.as_str());
            let user = user_info(request.context.user);
            of_request
                .member("userInfo", |out| write_typed(out, &user, "k8s.io/api/authentication/v1.UserInfo"));
            for (name, object) in [("object", &objects.object), ("oldObject", &objects.old_object)] {
                of_request.json(name, object.as_deref().unwrap_or(b"null"));
            }
            of_request.boolean("dryRun", request.context.dry_run);
            let options = request.options.to_object(request.operation);
            let of_options = format!("k8s.io/apimachinery/pkg/apis/meta/v1.{}", options.str_at("kind"));
            of_request.member("options", |out| write_typed(out, &options, &of_options));
        });
    });
    out.push(b'\n');
    out.into()
}

fn user_info(user: &UserInfo) -> Value {
    let mut info = json!({});
    if let Some(members) = info.as_object_mut() {
        for (name, text) in [("username", &user.name), ("uid", &user.uid)] {
            if !text.is_empty() {
                members.insert(name, text.as_str().into());
            }
        }
        if !user.groups.is_empty() {
            members.insert("groups", user.groups.as_slice().into());
        }
        if !user.extra.is_empty() {
            members.insert("extra", json!(user.extra));
        }
    }
    info
}

/// Writes a value with its fields in the order of their type.
fn write_typed(out: &mut Vec<u8>, value: &Value, type_name: &str) {
    match Schema::builtin().by_type_name(type_name).filter(|_| !value.is_null()) {
        Some(schema) => encode_to(out, value, schema),
        None => out.extend_from_slice(&encode_any(value)),
    }
}

fn write_kind(out: &mut ObjectWriter<'_>, name: &str, kind: &GroupVersionKind) {
    write_triple(out, name, &kind.group, &kind.version, "kind", &kind.kind);
}

fn write_resource(out: &mut ObjectWriter<'_>, name: &str, resource: &GroupVersionResource) {
    write_triple(out, name, &resource.group, &resource.version, "resource", &resource.resource);
}

fn write_triple(out: &mut ObjectWriter<'_>, name: &str, group: &str, version: &str, last: &str, value: &str) {
    out.object(name, |triple| {
        triple.text("group", group);
        triple.text("version", version);
        triple.text(last, value);
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_admission::{
        Operation,
        testing::{Request, endpoint},
    };

    #[test]
    fn reviews_name_what_was_asked_and_what_matched() {
        let mut request = Request::new(Operation::Update, "apps", "v1", "things", "ns");
        request.name = "n\"".to_owned();
        request.subresource = "status".to_owned();
        request.dry_run = true;
        request.user.name = "jane".to_owned();
        request.user.groups = vec!["devs".to_owned()];
        request.user.extra.insert("scope".to_owned(), vec!["a".to_owned()]);
        let objects = Objects { object: Some(br#"{"a":1}"#.to_vec()), old_object: None };
        let (requested, matched) = (request.endpoint(), endpoint("apps", "v2", "things"));
        let text = request.with(async |request| {
            review(ReviewVersion::V1beta1, "u", request, &requested, &matched, &objects)
        });
        let found: Value = serde_json::from_slice(&text).unwrap();
        let kind = |version: &str| json!({"group": "apps", "version": version, "kind": "things"});
        let resource = |version: &str| json!({"group": "apps", "version": version, "resource": "things"});
        let expected = json!({
            "kind": "AdmissionReview",
            "apiVersion": "admission.k8s.io/v1beta1",
            "request": {
                "uid": "u",
                "kind": kind("v2"),
                "resource": resource("v2"),
                "subResource": "status",
                "requestKind": kind("v1"),
                "requestResource": resource("v1"),
                "requestSubResource": "status",
                "name": "n\"",
                "namespace": "ns",
                "operation": "UPDATE",
                "userInfo": {"username": "jane", "groups": ["devs"], "extra": {"scope": ["a"]}},
                "object": {"a": 1},
                "oldObject": null,
                "dryRun": true,
                "options": null,
            },
        });
        assert_eq!(found, expected);
        let user = br#""userInfo":{"username":"jane","groups":["devs"],"extra":{"scope":["a"]}}"#;
        assert!(text.windows(user.len()).any(|part| part == user), "{text:?}");
        assert_eq!(text.last(), Some(&b'\n'));
    }

    #[test]
    fn texts_that_are_empty_are_absent() {
        let request = Request::new(Operation::Create, "", "v1", "nodes", "");
        let text = request.with(async |request| {
            let own = endpoint("", "v1", "nodes");
            review(ReviewVersion::V1, "u", request, &own, &own, &Objects::default())
        });
        let found: Value = serde_json::from_slice(&text).unwrap();
        let names: Vec<_> = found["request"].as_object().unwrap().keys().collect();
        for absent in ["name", "namespace", "subResource", "requestSubResource"] {
            assert!(!names.iter().any(|name| *name == absent), "{absent} in {names:?}");
        }
        assert_eq!(found["request"]["userInfo"], json!({}));
    }

    #[test]
    fn options_have_the_order_of_their_type() {
        let mut out = Vec::new();
        let options = json!({"apiVersion": "meta.k8s.io/v1", "fieldManager": "m", "dryRun": ["All"], "kind": "CreateOptions"});
        write_typed(&mut out, &options, "k8s.io/apimachinery/pkg/apis/meta/v1.CreateOptions");
        let expected =
            r#"{"kind":"CreateOptions","apiVersion":"meta.k8s.io/v1","dryRun":["All"],"fieldManager":"m"}"#;
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn the_first_known_version_is_sent() {
        let check = |versions: &[&str], expected: Option<ReviewVersion>| {
            assert_eq!(ReviewVersion::choose(versions.iter().copied()), expected, "{versions:?}");
        };
        check(&["v2", "v1beta1", "v1"], Some(ReviewVersion::V1beta1));
        check(&["v1", "v1beta1"], Some(ReviewVersion::V1));
        check(&["v2"], None);
        check(&[], None);
    }
}
