//! Validates labels, annotations and label selectors
//! (<https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/>).

use super::names::{empty_error, is_dns1123_subdomain, max_bytes_error, regex_error, starts_and_ends};
use crate::error_list::is_enough;
use crate::{ErrorList, FieldError, FieldPath, Map, Value, ValueExt};

/// The maximum length of a label's value and of the name part of a key, in bytes.
pub const LABEL_VALUE_MAX_LENGTH: usize = 63;
/// The maximum size of all annotations of an object, keys and values together, in bytes.
pub const TOTAL_ANNOTATION_SIZE_LIMIT: usize = 256 * 1024;

const KEY_MESSAGE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                           alphanumeric character";
const KEY_PATTERN: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const KEY_EXAMPLES: &[&str] = &["MyName", "my.name", "123-abc"];
const VALUE_MESSAGE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or \
                             '.', and must start and end with an alphanumeric character";
const VALUE_PATTERN: &str = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?";

/// Validates a qualified name, the form of label keys: `name` or `example.com/name`.
pub fn is_qualified_name(value: &str) -> Vec<String> {
    let mut errors = Vec::new();
    let (prefix, name) = match value.split_once('/') {
        None => (None, value),
        Some((_, rest)) if rest.contains('/') => {
            return vec![format!(
                "a valid label key {} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
                regex_error(KEY_MESSAGE, KEY_PATTERN, KEY_EXAMPLES)
            )];
        }
        Some((prefix, name)) => (Some(prefix), name),
    };
    match prefix {
        Some("") => errors.push(format!("prefix part {}", empty_error())),
        Some(prefix) => {
            let length = super::names::DNS1123_SUBDOMAIN_MAX_LENGTH;
            if prefix.len() > length {
                errors.push(format!("prefix part {}", max_bytes_error(length)));
            }
            let pattern_errors =
                is_dns1123_subdomain(prefix).into_iter().skip(usize::from(prefix.len() > length));
            errors.extend(pattern_errors.map(|message| format!("prefix part {message}")));
        }
        None => {}
    }
    if name.is_empty() {
        errors.push(format!("name part {}", empty_error()));
    } else if name.len() > LABEL_VALUE_MAX_LENGTH {
        errors.push(format!("name part {}", max_bytes_error(LABEL_VALUE_MAX_LENGTH)));
    }
    if !matches_name(name) {
        errors.push(format!("name part {}", regex_error(KEY_MESSAGE, KEY_PATTERN, KEY_EXAMPLES)));
    }
    errors
}

/// Validates a label's value.
pub fn is_valid_label_value(value: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if value.len() > LABEL_VALUE_MAX_LENGTH {
        errors.push(max_bytes_error(LABEL_VALUE_MAX_LENGTH));
    }
    if !value.is_empty() && !matches_name(value) {
        errors.push(regex_error(VALUE_MESSAGE, VALUE_PATTERN, &["MyValue", "my_value", "12345"]));
    }
    errors
}

fn matches_name(name: &str) -> bool {
    let bytes = name.as_bytes();
    starts_and_ends(bytes, |byte| byte.is_ascii_alphanumeric())
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

/// Validates a label's key.
pub fn validate_label_name(name: &str, path: &FieldPath) -> ErrorList {
    is_qualified_name(name).into_iter().map(|message| FieldError::invalid(path, name, message)).collect()
}

/// Validates all labels of an object (or of a selector's `matchLabels`).
pub fn validate_labels(labels: &Map, path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    for (key, value) in labels {
        errors.extend(validate_label_name(key, path));
        let value = value.as_str().unwrap_or_default();
        errors.extend(
            is_valid_label_value(value).into_iter().map(|message| FieldError::invalid(path, value, message)),
        );
    }
    errors
}

/// Validates all annotations of an object: their keys, case-insensitively, and their total size.
pub fn validate_annotations(annotations: &Map, path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut size = 0;
    for (key, value) in annotations {
        for message in is_qualified_name(&pintle_go_forms::to_lower(key)) {
            errors.push(FieldError::invalid(path, key.as_str(), message));
        }
        size += key.len() + value.as_str().map_or(0, str::len);
    }
    if size > TOTAL_ANNOTATION_SIZE_LIMIT {
        errors.push(FieldError::too_long(path, TOTAL_ANNOTATION_SIZE_LIMIT));
    }
    errors
}

/// Exceptions for label selectors of objects that were stored before the rules existed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LabelSelectorOptions {
    /// Allows values that are not valid for a label.
    pub allow_invalid_label_value: bool,
    /// Allows unknown operators.
    pub allow_unknown_operator: bool,
}

/// Validates a `LabelSelector` object; `null` is valid.
pub fn validate_label_selector(
    selector: &Value,
    options: LabelSelectorOptions,
    path: &FieldPath,
) -> ErrorList {
    let mut errors = validate_labels(selector.map_at("matchLabels"), &path.child("matchLabels"));
    let expressions = path.child("matchExpressions");
    for (index, requirement) in selector.items_at("matchExpressions").iter().enumerate() {
        if is_enough(&errors) {
            break;
        }
        errors.extend(validate_label_selector_requirement(requirement, options, &expressions.index(index)));
    }
    errors
}

/// Validates one of a `LabelSelector`'s `matchExpressions`.
pub fn validate_label_selector_requirement(
    requirement: &Value,
    options: LabelSelectorOptions,
    path: &FieldPath,
) -> ErrorList {
    let mut errors = validate_operator(requirement, options.allow_unknown_operator, path);
    errors.extend(validate_label_name(requirement.str_at("key"), &path.child("key")));
    if !options.allow_invalid_label_value {
        for (index, value) in requirement.items_at("values").iter().enumerate() {
            if is_enough(&errors) {
                break;
            }
            let value = value.as_str().unwrap_or_default();
            for message in is_valid_label_value(value) {
                errors.push(FieldError::invalid(&path.child("values").index(index), value, message));
            }
        }
    }
    errors
}

/// Validates one requirement of a field selector in an authorization request.
pub fn validate_field_selector_requirement(
    requirement: &Value,
    allow_unknown_operator: bool,
    path: &FieldPath,
) -> ErrorList {
    let mut errors = ErrorList::new();
    if requirement.str_at("key").is_empty() {
        errors.push(FieldError::required(&path.child("key"), "must be specified"));
    }
    errors.extend(validate_operator(requirement, allow_unknown_operator, path));
    errors
}

fn validate_operator(requirement: &Value, allow_unknown: bool, path: &FieldPath) -> ErrorList {
    let values = path.child("values");
    let has_values = !requirement.items_at("values").is_empty();
    match requirement.str_at("operator") {
        "In" | "NotIn" if !has_values => {
            vec![FieldError::required(&values, "must be specified when `operator` is 'In' or 'NotIn'")]
        }
        "Exists" | "DoesNotExist" if has_values => {
            vec![FieldError::forbidden(
                &values,
                "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
            )]
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => ErrorList::new(),
        _ if allow_unknown => ErrorList::new(),
        operator => {
            vec![
                FieldError::invalid(&path.child("operator"), operator, "not a valid selector operator")
                    .of_named_type(),
            ]
        }
    }
}

/// Whether a `matchExpressions` value of this selector is not valid for a label; an update may then keep it.
pub fn label_selector_has_invalid_label_value(selector: &Value) -> bool {
    selector
        .items_at("matchExpressions")
        .iter()
        .flat_map(|requirement| requirement.items_at("values"))
        .any(|value| !is_valid_label_value(value.as_str().unwrap_or_default()).is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_tree::json;

    #[test]
    fn keys_are_right_or_say_why_not() {
        for key in ["a", "A_b.c-1", "example.com/k", "a.b/C"] {
            assert!(is_qualified_name(key).is_empty(), "{key}");
        }
        let pattern = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                       alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation \
                       is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
        let long = "k".repeat(64);
        let rows = [
            ("a b", vec![format!("name part {pattern}")]),
            ("", vec!["name part must be non-empty".to_owned(), format!("name part {pattern}")]),
            ("/a", vec!["prefix part must be non-empty".to_owned()]),
            (long.as_str(), vec!["name part must be no more than 63 bytes".to_owned()]),
            (
                "a/b/c",
                vec![format!(
                    "a valid label key {pattern} with an optional DNS subdomain prefix and '/' (e.g. \
                     'example.com/MyName')"
                )],
            ),
        ];
        for (key, messages) in rows {
            assert_eq!(is_qualified_name(key), messages, "{key}");
        }
    }

    #[test]
    fn selectors_are_right_or_say_why_not() {
        let path = FieldPath::new("spec").child("selector");
        let selector = json!({
            "matchLabels": {"a": "-"},
            "matchExpressions": [
                {"key": "k", "operator": "In"},
                {"key": "k", "operator": "Exists", "values": ["v"]},
                {"key": "k", "operator": "Is", "values": ["a b"]},
            ],
        });
        let fields: Vec<String> = validate_label_selector(&selector, LabelSelectorOptions::default(), &path)
            .iter()
            .map(|error| error.field.to_string())
            .collect();
        assert_eq!(
            fields,
            [
                "spec.selector.matchLabels",
                "spec.selector.matchExpressions[0].values",
                "spec.selector.matchExpressions[1].values",
                "spec.selector.matchExpressions[2].operator",
                "spec.selector.matchExpressions[2].values[0]",
            ]
        );
        assert!(label_selector_has_invalid_label_value(&selector));
    }
}
