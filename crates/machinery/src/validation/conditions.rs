//! Validates `metav1.Condition` lists in a status.

use super::labels::validate_label_name;
use super::names::regex_error;
use crate::error_list::is_enough;
use crate::{ErrorList, FieldError, FieldPath, Value, ValueExt};
use std::collections::HashSet;

const MAX_REASON_LENGTH: usize = 1024;
const MAX_MESSAGE_LENGTH: usize = 32 * 1024;
const REASON_MESSAGE: &str = "a condition reason must start with alphabetic character, optionally followed by a string \
                              of alphanumeric characters or '_,:', and must end with an alphanumeric character or '_'";
const REASON_PATTERN: &str = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?";

/// Validates a list of conditions: each type once, each condition complete.
pub fn validate_conditions(conditions: &[Value], path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut types: HashSet<&str> = HashSet::new();
    for (index, condition) in conditions.iter().enumerate() {
        if is_enough(&errors) {
            break;
        }
        let path = path.index(index);
        let condition_type = condition.str_at("type");
        if !types.insert(condition_type) {
            errors.push(FieldError::duplicate(&path.child("type"), condition_type));
        }
        errors.extend(validate_condition(condition, &path));
    }
    errors
}

/// Validates one condition.
pub fn validate_condition(condition: &Value, path: &FieldPath) -> ErrorList {
    let mut errors = validate_label_name(condition.str_at("type"), &path.child("type"));
    let status = condition.str_at("status");
    let statuses = ["False", "True", "Unknown"];
    if !statuses.contains(&status) {
        errors.push(FieldError::not_supported(&path.child("status"), status, &statuses));
    }
    if let Some(generation) = condition.i64_at("observedGeneration").filter(|generation| *generation < 0) {
        let detail = "must be greater than or equal to zero";
        errors.push(FieldError::invalid(&path.child("observedGeneration"), generation, detail));
    }
    if condition.str_at("lastTransitionTime").is_empty() {
        errors.push(FieldError::required(&path.child("lastTransitionTime"), ""));
    }
    let reason = condition.str_at("reason");
    let reason_path = path.child("reason");
    if reason.is_empty() {
        errors.push(FieldError::required(&reason_path, ""));
    } else if !is_reason(reason) {
        let examples = ["my_name", "MY_NAME", "MyName", "ReasonA,ReasonB", "ReasonA:ReasonB"];
        let detail = regex_error(REASON_MESSAGE, REASON_PATTERN, &examples);
        errors.push(FieldError::invalid(&reason_path, reason, detail));
    }
    if reason.len() > MAX_REASON_LENGTH {
        errors.push(FieldError::too_long(&reason_path, MAX_REASON_LENGTH));
    }
    if condition.str_at("message").len() > MAX_MESSAGE_LENGTH {
        errors.push(FieldError::too_long(&path.child("message"), MAX_MESSAGE_LENGTH));
    }
    errors
}

fn is_reason(reason: &str) -> bool {
    let word = |byte: u8| byte == b'_' || byte.is_ascii_alphanumeric();
    reason.starts_with(|c: char| c.is_ascii_alphabetic())
        && reason.bytes().last().is_some_and(word)
        && reason.bytes().all(|byte| word(byte) || matches!(byte, b',' | b':'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_tree::json;

    #[test]
    fn conditions_are_right_or_say_why_not() {
        let right = json!({
            "type": "Ready", "status": "True", "reason": "A:b", "lastTransitionTime": "2024-01-01T00:00:00Z",
        });
        let path = FieldPath::new("status").child("conditions");
        assert!(validate_conditions(std::slice::from_ref(&right), &path).is_empty());
        let errors = validate_conditions(
            &[right, json!({"type": "Ready", "status": "Maybe", "reason": "-", "observedGeneration": -1})],
            &path,
        );
        let fields: Vec<String> = errors.iter().map(|error| error.field.to_string()).collect();
        assert_eq!(
            fields,
            ["type", "status", "observedGeneration", "lastTransitionTime", "reason"]
                .map(|name| format!("status.conditions[1].{name}"))
        );
    }
}
