//! Validates the fields that the `scale` subresource shows.

use crate::definition_view::Scale;
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, Value,
    nested::{nested_int64, nested_string},
};

/// Validates the desired number of replicas.
pub(super) fn validate_spec(scale: &Scale, object: &Value, errors: &mut ErrorList) {
    validate_number(&scale.spec_replicas_path, object, errors);
}

/// Validates the observed number of replicas and the selector.
pub(super) fn validate_status(scale: &Scale, object: &Value, errors: &mut ErrorList) {
    validate_number(&scale.status_replicas_path, object, errors);
    let Some(path) = &scale.label_selector_path else { return };
    if let Err(problem) = nested_string(object, plain(path)) {
        errors.push(FieldError::invalid(&FieldPath::new(path.as_str()), "", problem));
    }
}

fn validate_number(path: &str, object: &Value, errors: &mut ErrorList) {
    let field = FieldPath::new(path);
    match nested_int64(object, plain(path)) {
        Ok(None) => {}
        Ok(Some(number)) if number < 0 => {
            errors.push(FieldError::invalid(&field, number, "should be a non-negative integer"));
        }
        Ok(Some(number)) if number > i64::from(i32::MAX) => {
            let detail = format!("should be less than or equal to {}", i32::MAX);
            errors.push(FieldError::invalid(&field, number, detail));
        }
        Ok(Some(_)) => {}
        Err(problem) => errors.push(FieldError::invalid(&field, 0, problem)),
    }
}

/// Converts a path of a definition to a path in an object.
pub(super) fn plain(path: &str) -> &str {
    path.strip_prefix('.').unwrap_or(path)
}
