//! `ImageReview`s (<https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#request-payloads>).

use pintle_admission::AdmissionRequest;
use pintle_machinery::{Map, Value, ValueExt};
use pintle_webhook::{FieldType, ReviewKind};
use std::collections::BTreeMap;

/// The part of annotation keys that the webhook gets.
const ANNOTATIONS: &str = ".image-policy.k8s.io/";
const KIND: ReviewKind = ReviewKind {
    kind: "ImageReview",
    api_version: "imagepolicy.k8s.io/v1alpha1",
    other_versions: &[],
    scheme: "pkg/api/legacyscheme/scheme.go:30",
    status: FieldType::Object(
        "ImageReviewStatus",
        &[
            ("allowed", FieldType::Bool),
            ("reason", FieldType::Text),
            ("auditAnnotations", FieldType::TextMap),
        ],
    ),
};

/// The answer of the webhook.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct ReviewStatus {
    pub(super) allowed: bool,
    pub(super) reason: String,
    pub(super) audit_annotations: BTreeMap<String, String>,
}

/// The `spec` of a review in JSON: the images, annotations and namespace of a pod.
pub(super) fn spec(request: &AdmissionRequest<'_>) -> String {
    let lists: &[&str] = match request.subresource {
        "" => &["spec.containers", "spec.initContainers"],
        _ => &["spec.ephemeralContainers"],
    };
    let containers = lists.iter().flat_map(|list| request.object.items_at(list));
    let containers: Vec<Value> = containers
        .map(|container| match container.str_at("image") {
            "" => Value::Object(Map::new()),
            image => [("image".to_owned(), Value::from(image))].into_iter().collect(),
        })
        .collect();
    let annotations = request.object.map_at("metadata.annotations").iter();
    let annotations: Map = annotations
        .filter(|(key, _)| key.contains(ANNOTATIONS))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    let mut spec = Map::new();
    if !containers.is_empty() {
        spec.insert("containers", containers.into());
    }
    if !annotations.is_empty() {
        spec.insert("annotations", annotations.into());
    }
    if !request.namespace.is_empty() {
        spec.insert("namespace", request.namespace.into());
    }
    Value::Object(spec).to_string()
}

/// The review with a `spec`, as the webhook gets it.
pub(super) fn question(spec: &str) -> String {
    let ReviewKind { kind, api_version, .. } = KIND;
    format!(
        "{{\"kind\":\"{kind}\",\"apiVersion\":\"{api_version}\",\"metadata\":{{}},\"spec\":{spec},\"status\":{{\"allowed\":\
         false}}}}\n"
    )
}

impl ReviewStatus {
    /// Reads the status of an answer.
    pub(super) fn of(answer: &Value) -> Result<ReviewStatus, String> {
        KIND.check(answer)?;
        let annotations = answer.map_at("status.auditAnnotations").iter();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Ok(ReviewStatus {
            allowed: answer.bool_at("status.allowed"),
            reason: answer.str_at("status.reason").to_owned(),
            audit_annotations: annotations.map(|(key, value)| (key.to_string(), text(value))).collect(),
        })
    }

    /// The size in bytes, approximately.
    pub(super) fn size(&self) -> usize {
        let annotations = self.audit_annotations.iter().map(|(key, value)| key.len() + value.len() + 50);
        self.reason.len() + annotations.sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    #[test]
    fn answers_have_the_types_of_a_status() {
        let status = json!({"allowed": true, "reason": "r", "auditAnnotations": {"a": "b"}, "other": 1});
        let found = ReviewStatus::of(&json!({"status": status})).unwrap();
        assert!(found.allowed && found.reason == "r" && found.audit_annotations["a"] == "b");
        assert_eq!(ReviewStatus::of(&json!({})), Ok(ReviewStatus::default()));
        let unset = ReviewStatus::of(&json!({"status": {"auditAnnotations": {"a": null}}})).unwrap();
        assert_eq!(unset.audit_annotations["a"], "");
        let admission = json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "status": {"allowed": true}});
        assert!(
            ReviewStatus::of(&admission)
                .unwrap_err()
                .starts_with("no kind \"AdmissionReview\" is registered")
        );
        let error = |status: Value| ReviewStatus::of(&json!({"status": status})).unwrap_err();
        let wrong = "json: cannot unmarshal string into Go struct field ImageReviewStatus.status.allowed of type bool";
        assert_eq!(error(json!({"allowed": "yes"})), wrong);
        assert!(error(json!({"reason": 1})).ends_with("status.reason of type string"));
        assert!(
            error(json!({"auditAnnotations": {"a": 1}})).ends_with("status.auditAnnotations of type string")
        );
    }
}
