//! Validates the additional printer columns
//! (<https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#additional-printer-columns>).

use super::path::Path;
use super::subresources::validate_simple_json_path;
use pintle_machinery::{ErrorList, FieldError, Value, ValueExt};

const TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const FORMATS: [&str; 8] = ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];

/// Validates a column.
pub(super) fn validate_column(column: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    if column.str_at("name").is_empty() {
        errors.push(FieldError::required(&path.child("name").field(), ""));
    }
    let detail = || format!("must be one of {}", TYPES.join(","));
    match column.str_at("type") {
        "" => errors.push(FieldError::required(&path.child("type").field(), detail())),
        ty if TYPES.contains(&ty) => {}
        other => errors.push(FieldError::invalid(&path.child("type").field(), other, detail())),
    }
    let format = column.str_at("format");
    if !format.is_empty() && !FORMATS.contains(&format) {
        let detail = format!("must be one of {}", FORMATS.join(","));
        errors.push(FieldError::invalid(&path.child("format").field(), format, detail));
    }
    // The error path uses the field name of the reference's internal version.
    let json_path_path = path.child("JSONPath");
    match column.str_at("jsonPath") {
        "" => errors.push(FieldError::required(&json_path_path.field(), "")),
        json_path => errors.extend(validate_simple_json_path(json_path, &json_path_path)),
    }
}
