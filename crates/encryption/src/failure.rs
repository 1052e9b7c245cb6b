//! The failure of an encryption or decryption, with its label in metrics.

use pintle_plugin_socket::{Code, Status, code_name, rpc_error};
use pintle_storage::TransformError;
use std::fmt;

/// A failed transformation. The text contains no key and no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    text: String,
    /// The gRPC code that a KMS plugin returned, if one was called.
    code: Option<Code>,
}

impl Failure {
    pub(crate) fn new(text: impl Into<String>) -> Failure {
        Failure { text: text.into(), code: None }
    }

    /// The failure of a call to a KMS plugin.
    pub(crate) fn of_call(prefix: &str, status: &Status) -> Failure {
        Failure { text: format!("{prefix}{}", rpc_error(status)), code: Some(status.code()) }
    }

    /// Combines failures in the format of Kubernetes' aggregates: a single failure is unchanged, and duplicate texts
    /// are omitted. `None` without failures.
    pub(crate) fn aggregate(failures: Vec<Failure>) -> Option<Failure> {
        let mut failures = failures;
        if failures.len() <= 1 {
            return failures.pop();
        }
        let mut texts: Vec<String> = Vec::with_capacity(failures.len());
        for failure in failures {
            if !texts.contains(&failure.text) {
                texts.push(failure.text);
            }
        }
        let text = match texts.as_slice() {
            [one] => one.clone(),
            several => format!("[{}]", several.join(", ")),
        };
        Some(Failure::new(text))
    }

    /// The `status` label of a failed transformation.
    pub(crate) fn label(&self) -> &'static str {
        self.code.map_or("unknown-non-grpc", code_name)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<Failure> for TransformError {
    fn from(failure: Failure) -> TransformError {
        TransformError(failure.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_told_together() {
        let aggregate = |texts: &[&str]| {
            Failure::aggregate(texts.iter().map(|text| Failure::new(*text)).collect())
                .map(|failure| failure.to_string())
        };
        assert_eq!(aggregate(&[]), None);
        assert_eq!(aggregate(&["a"]).as_deref(), Some("a"));
        assert_eq!(aggregate(&["a", "b"]).as_deref(), Some("[a, b]"));
        assert_eq!(aggregate(&["a", "b", "a"]).as_deref(), Some("[a, b]"));
        assert_eq!(aggregate(&["a", "a"]).as_deref(), Some("a"));
    }

    #[test]
    fn calls_fail_in_the_words_of_grpc() {
        let failure = Failure::of_call("failed to decrypt DEK, error: ", &Status::not_found("no such key"));
        assert_eq!(
            failure.to_string(),
            "failed to decrypt DEK, error: rpc error: code = NotFound desc = no such key"
        );
        assert_eq!(failure.label(), "NotFound");
        assert_eq!(Failure::new("x").label(), "unknown-non-grpc");
    }
}
