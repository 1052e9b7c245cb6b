//! Validates the subresources of custom resources
//! (<https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#subresources>).

use super::path::Path;
use pintle_machinery::{ErrorList, FieldError, Value, ValueExt};

/// Validates `subresources`.
pub(super) fn validate_subresources(subresources: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let Some(scale) = subresources.field("scale") else { return };
    let path = path.child("scale");
    for (field, prefix) in [("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")] {
        let path = path.child(field);
        match scale.str_at(field) {
            "" => errors.push(FieldError::required(&path.field(), "")),
            json_path => {
                let parent = prefix.trim_end_matches('.');
                let detail = format!("should be a json path under {parent}");
                errors.extend(validate_below(json_path, &[prefix], detail, &path));
            }
        }
    }
    let selector = scale.str_at("labelSelectorPath");
    if !selector.is_empty() {
        let detail = "should be a json path under either .spec or .status".to_owned();
        let path = path.child("labelSelectorPath");
        let error = validate_below(selector, &[".spec.", ".status."], detail, &path);
        errors.extend(error.map(|error| match selector.starts_with('.') {
            true => error.of_named_type(),
            false => error,
        }));
    }
}

fn validate_below(json_path: &str, prefixes: &[&str], detail: String, path: &Path<'_>) -> Option<FieldError> {
    validate_simple_json_path(json_path, path).or_else(|| {
        let is_below = prefixes.iter().any(|prefix| json_path.starts_with(prefix));
        (!is_below).then(|| FieldError::invalid(&path.field(), json_path, detail))
    })
}

/// Validates a path of dotted names, with few requirements.
pub(super) fn validate_simple_json_path(json_path: &str, path: &Path<'_>) -> Option<FieldError> {
    let detail = "must be a simple json path starting with .";
    (!json_path.starts_with('.')).then(|| FieldError::invalid(&path.field(), json_path, detail))
}
