//! `pods/log`: validates the options of a log.

use pintle_machinery::{ErrorList, FieldError, FieldPath, GroupVersionKind, Value, ValueExt};
use pintle_registry::{ConnectOptions, SubresourceKind, Verb};

/// The declaration of the subresource. Discovery lists it under the kind of the pod.
pub(super) fn subresource() -> SubresourceKind {
    SubresourceKind::Connect {
        kind: GroupVersionKind::new("", "v1", "Pod"),
        options: ConnectOptions {
            kind: GroupVersionKind::new("", "v1", "PodLogOptions"),
            validate: validate_options,
        },
        verbs: vec![Verb::Get],
    }
}

fn validate_options(options: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut at_least = |name: &str, minimum: i64, detail: &str| {
        if let Some(value) = options.i64_at(name).filter(|value| *value < minimum) {
            errors.push(FieldError::invalid(&FieldPath::new(name), value, detail));
        }
    };
    at_least("tailLines", 0, "must be greater than or equal to 0");
    at_least("limitBytes", 1, "must be greater than 0");
    match options.at("sinceTime").is_some() && options.at("sinceSeconds").is_some() {
        true => {
            let detail = "at most one of `sinceTime` or `sinceSeconds` may be specified";
            errors.push(FieldError::forbidden(&FieldPath::new("[]"), detail));
        }
        false => at_least("sinceSeconds", 1, "must be greater than 0"),
    }
    // The feature gate `PodLogsQuerySplitStreams` is off.
    if options.at("stream").is_some() {
        errors.push(FieldError::forbidden(&FieldPath::new("stream"), "may not be specified"));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn options_of_logs_are_checked() {
        let check = |options: Value, expected: &[&str]| {
            let errors: Vec<String> = validate_options(&options).iter().map(ToString::to_string).collect();
            assert_eq!(errors, expected, "{options}");
        };
        check(json!({"tailLines": 0, "limitBytes": 1, "sinceSeconds": 1}), &[]);
        check(
            json!({"tailLines": -1, "limitBytes": 0, "sinceSeconds": 0, "stream": "All"}),
            &[
                "tailLines: Invalid value: -1: must be greater than or equal to 0",
                "limitBytes: Invalid value: 0: must be greater than 0",
                "sinceSeconds: Invalid value: 0: must be greater than 0",
                "stream: Forbidden: may not be specified",
            ],
        );
        check(
            json!({"sinceSeconds": 0, "sinceTime": "0001-01-01T00:00:00Z"}),
            &["[]: Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified"],
        );
    }
}
