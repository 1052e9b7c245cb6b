//! The kind of the objects that webhooks are asked with and answer with.

use crate::FieldType;
use pintle_machinery::{Value, scheme::not_registered, text::go_json_type};

/// The scheme of the clients of authentication and authorization webhooks.
pub const CLIENT_SCHEME: &str = "k8s.io/client-go/kubernetes/scheme/register.go:82";

/// The kind and version that an answer must have, since they say how its fields are to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReviewKind {
    /// The kind.
    pub kind: &'static str,
    /// Group and version.
    pub api_version: &'static str,
    /// The versions of the kind that the scheme also has, and does not convert.
    pub other_versions: &'static [&'static str],
    /// The name of the scheme that Kubernetes' client decodes answers with; errors name it.
    pub scheme: &'static str,
    /// The type of the status of an answer.
    pub status: FieldType,
}

impl ReviewKind {
    /// Checks kind and version of an answer, and the types of the fields of its status. Where the answer has no kind and
    /// version, they are those of the question.
    ///
    /// # Errors
    /// When the answer is of another kind or version, or a field of its status has another type: what is not understood
    /// decides nothing.
    pub fn check(&self, answer: &Value) -> Result<(), String> {
        let kind = text(answer, "kind", self.kind)?;
        let api_version = text(answer, "apiVersion", self.api_version)?;
        let version = |api_version: &'static str| api_version.rsplit('/').next().unwrap_or_default();
        let other = self.other_versions.iter().find(|other| **other == api_version);
        match (kind == self.kind, api_version == self.api_version, other) {
            (true, true, _) => {
                self.status.check(answer.get("status"), self.kind, "status", version(self.api_version))
            }
            (true, false, Some(other)) => Err(format!(
                "converting ({}.{kind}) to ({}.{kind}): unknown conversion",
                version(other),
                version(self.api_version)
            )),
            _ => Err(not_registered(kind, api_version, self.scheme)),
        }
    }
}

fn text<'a>(answer: &'a Value, name: &str, default: &'a str) -> Result<&'a str, String> {
    match answer.get(name) {
        None | Some(Value::Null) => Ok(default),
        Some(Value::String(text)) if text.is_empty() => Ok(default),
        Some(Value::String(text)) => Ok(text),
        Some(other) => Err(format!(
            "couldn't get version/kind; json parse error: json: cannot unmarshal {} into Go struct field .{name} of type string",
            go_json_type(other)
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    #[test]
    fn answers_of_another_kind_or_version_are_refused() {
        let wanted = ReviewKind {
            kind: "ImageReview",
            api_version: "imagepolicy.k8s.io/v1alpha1",
            other_versions: &["imagepolicy.k8s.io/v2"],
            scheme: "s",
            status: FieldType::Object("ImageReviewStatus", &[("allowed", FieldType::Bool)]),
        };
        for answer in [
            json!({"kind": "ImageReview", "apiVersion": "imagepolicy.k8s.io/v1alpha1"}),
            json!({"kind": "ImageReview"}),
            json!({"apiVersion": "imagepolicy.k8s.io/v1alpha1", "kind": null}),
            json!({"kind": "", "apiVersion": ""}),
            json!({}),
        ] {
            assert_eq!(wanted.check(&answer), Ok(()), "{answer}");
        }
        let check = |answer: Value, expected: &str| assert_eq!(wanted.check(&answer).unwrap_err(), expected);
        check(
            json!({"kind": "Status", "apiVersion": "v1"}),
            r#"no kind "Status" is registered for version "v1" in scheme "s""#,
        );
        check(
            json!({"kind": "ImageReview", "apiVersion": "imagepolicy.k8s.io/v1"}),
            r#"no kind "ImageReview" is registered for version "imagepolicy.k8s.io/v1" in scheme "s""#,
        );
        check(
            json!({"kind": "ImageReview", "apiVersion": "imagepolicy.k8s.io/v2"}),
            "converting (v2.ImageReview) to (v1alpha1.ImageReview): unknown conversion",
        );
        check(
            json!({"kind": 1}),
            "couldn't get version/kind; json parse error: json: cannot unmarshal number into Go struct field .kind of type string",
        );
    }

    #[test]
    fn answers_with_fields_of_other_types_are_refused() {
        const USER: FieldType = FieldType::Object(
            "UserInfo",
            &[
                ("name", FieldType::Text),
                ("groups", FieldType::Texts),
                ("extra", FieldType::TextsMap("ExtraValue")),
            ],
        );
        let wanted = ReviewKind {
            kind: "Review",
            api_version: "g/v1",
            other_versions: &[],
            scheme: "s",
            status: FieldType::Object(
                "ReviewStatus",
                &[("allowed", FieldType::Bool), ("user", USER), ("notes", FieldType::TextMap)],
            ),
        };
        for status in [
            json!(null),
            json!({}),
            json!({"allowed": null, "user": null, "notes": null, "other": 1}),
            json!({"allowed": true, "user": {"groups": ["a", null], "extra": {"a": ["b"], "c": null}}, "notes": {"a": "b"}}),
        ] {
            assert_eq!(wanted.check(&json!({"status": status})), Ok(()), "{status}");
        }
        for (status, found, field, ty) in [
            (json!("x"), "string", "Review.status", "v1.ReviewStatus"),
            (json!({"allowed": "true"}), "string", "ReviewStatus.status.allowed", "bool"),
            (json!({"user": []}), "array", "ReviewStatus.status.user", "v1.UserInfo"),
            (json!({"user": {"name": 1}}), "number", "UserInfo.status.user.name", "string"),
            (json!({"user": {"groups": "a"}}), "string", "UserInfo.status.user.groups", "[]string"),
            (json!({"user": {"groups": [1]}}), "number", "UserInfo.status.user.groups", "string"),
            (
                json!({"user": {"extra": []}}),
                "array",
                "UserInfo.status.user.extra",
                "map[string]v1.ExtraValue",
            ),
            (json!({"user": {"extra": {"a": "b"}}}), "string", "UserInfo.status.user.extra", "v1.ExtraValue"),
            (json!({"notes": {"a": 1}}), "number", "ReviewStatus.status.notes", "string"),
        ] {
            let expected =
                format!("json: cannot unmarshal {found} into Go struct field {field} of type {ty}");
            assert_eq!(wanted.check(&json!({"status": status})), Err(expected), "{status}");
        }
    }
}
