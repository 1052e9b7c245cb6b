//! The kind of the objects that webhooks are asked with and answer with.

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
    /// The name of the scheme that Kubernetes' client decodes answers with; errors name it.
    pub scheme: &'static str,
}

impl ReviewKind {
    /// Checks kind and version of an answer. Where the answer has none, they are those of the question.
    ///
    /// # Errors
    /// When the answer is of another kind or version.
    pub fn check(&self, answer: &Value) -> Result<(), String> {
        let kind = text(answer, "kind", self.kind)?;
        let api_version = text(answer, "apiVersion", self.api_version)?;
        match (kind, api_version) == (self.kind, self.api_version) {
            true => Ok(()),
            false => Err(not_registered(kind, api_version, self.scheme)),
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
        let wanted =
            ReviewKind { kind: "ImageReview", api_version: "imagepolicy.k8s.io/v1alpha1", scheme: "s" };
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
            json!({"kind": 1}),
            "couldn't get version/kind; json parse error: json: cannot unmarshal number into Go struct field .kind of type string",
        );
    }
}
