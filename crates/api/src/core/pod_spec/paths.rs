//! Validates paths within volumes.

use pintle_machinery::{ErrorList, FieldError, FieldPath};

/// Validates a relative path that stays within the volume and does not start with `..`, which the kubelet reserves.
pub(super) fn validate_local_non_reserved(value: &str, path: &FieldPath) -> ErrorList {
    let mut errors = validate_local_descending(value, path);
    // The check above rejects "../".
    if value.starts_with("..") && !value.starts_with("../") {
        errors.push(FieldError::invalid(path, value, "must not start with '..'"));
    }
    errors
}

/// Validates a relative path without `..` elements.
pub(super) fn validate_local_descending(value: &str, path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    if value.starts_with('/') {
        errors.push(FieldError::invalid(path, value, "must be a relative path"));
    }
    errors.extend(validate_no_backsteps(value, path));
    errors
}

/// Rejects a path with a `..` element.
pub(crate) fn validate_no_backsteps(value: &str, path: &FieldPath) -> ErrorList {
    if value.split('/').any(|part| part == "..") {
        return vec![FieldError::invalid(path, value, "must not contain '..'")];
    }
    ErrorList::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_below() {
        let rows: &[(&str, &[&str])] = &[
            ("a/b", &[]),
            ("a..b", &[]),
            ("/a", &[r#"p: Invalid value: "/a": must be a relative path"#]),
            ("a/../b", &[r#"p: Invalid value: "a/../b": must not contain '..'"#]),
            ("..a", &[r#"p: Invalid value: "..a": must not start with '..'"#]),
            ("../a", &[r#"p: Invalid value: "../a": must not contain '..'"#]),
            (
                "..",
                &[
                    r#"p: Invalid value: "..": must not contain '..'"#,
                    r#"p: Invalid value: "..": must not start with '..'"#,
                ],
            ),
        ];
        for (value, wanted) in rows {
            let errors = validate_local_non_reserved(value, &FieldPath::new("p"));
            let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
            assert_eq!(texts, *wanted);
        }
    }
}
