//! What `scale` shows of an object must be numbers that it can show.

use crate::definition_view::Scale;
use pintle_machinery::{ErrorList, FieldError, FieldPath, Value};

/// Checks the wanted number.
pub(super) fn validate_spec(scale: &Scale, object: &Value, errors: &mut ErrorList) {
    validate_number(&scale.spec_replicas_path, object, errors);
}

/// Checks the actual number and the selector.
pub(super) fn validate_status(scale: &Scale, object: &Value, errors: &mut ErrorList) {
    validate_number(&scale.status_replicas_path, object, errors);
    let Some(path) = &scale.label_selector_path else { return };
    let problem = match nested(object, path) {
        Ok(None | Some(Value::String(_))) => return,
        Ok(Some(other)) => accessor_error(path, other, "string"),
        Err(problem) => problem,
    };
    errors.push(FieldError::invalid(&FieldPath::new(path.as_str()), "", problem));
}

fn validate_number(path: &str, object: &Value, errors: &mut ErrorList) {
    let field = FieldPath::new(path);
    let number = match nested(object, path) {
        Ok(None) => return,
        Ok(Some(value)) => match value.as_i64() {
            Some(number) => number,
            None => {
                errors.push(FieldError::invalid(&field, 0, accessor_error(path, value, "int64")));
                return;
            }
        },
        Err(problem) => {
            errors.push(FieldError::invalid(&field, 0, problem));
            return;
        }
    };
    if number < 0 {
        errors.push(FieldError::invalid(&field, number, "should be a non-negative integer"));
    } else if number > i64::from(i32::MAX) {
        let detail = format!("should be less than or equal to {}", i32::MAX);
        errors.push(FieldError::invalid(&field, number, detail));
    }
}

/// The value at a path such as `.spec.replicas`, or which part of the way is no object.
fn nested<'a>(object: &'a Value, path: &str) -> Result<Option<&'a Value>, String> {
    let names: Vec<&str> = path.trim_start_matches('.').split('.').collect();
    let mut value = object;
    for (depth, name) in names.iter().enumerate() {
        let Some(members) = value.as_object() else {
            let way = names.get(..=depth).unwrap_or_default().join(".");
            return Err(format!(
                ".{way} accessor error: {} is of the type {}, expected map[string]interface{{}}",
                go_value(value),
                go_type(value)
            ));
        };
        match members.get(*name) {
            None => return Ok(None),
            Some(member) => value = member,
        }
    }
    Ok(Some(value))
}

fn accessor_error(path: &str, value: &Value, expected: &str) -> String {
    let path = path.trim_start_matches('.');
    format!(
        ".{path} accessor error: {} is of the type {}, expected {expected}",
        go_value(value),
        go_type(value)
    )
}

fn go_value(value: &Value) -> String {
    pintle_machinery::text::go_format(value)
}

fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}
