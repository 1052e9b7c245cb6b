//! Validates the names of a custom resource.

use super::path::Path;
use pintle_machinery::{ErrorList, FieldError, Value, ValueExt, validation::is_dns1035_label};

/// Validates the names that are present.
pub(super) fn validate_names(names: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let mut wrong = |path: &Path<'_>, name: &str, detail: String| {
        errors.push(FieldError::invalid(&path.field(), name, detail));
    };
    for field in ["plural", "singular", "kind", "listKind"] {
        let name = names.str_at(field);
        let is_kind = matches!(field, "kind" | "listKind");
        let failures = match is_kind {
            true => is_dns1035_label(&pintle_go_forms::to_lower(name)),
            false => is_dns1035_label(name),
        };
        if !name.is_empty() && !failures.is_empty() {
            let mixed = if is_kind { "may have mixed case, but should otherwise match: " } else { "" };
            wrong(&path.child(field), name, format!("{mixed}{}", failures.join(",")));
        }
    }
    validate_labels(names, "shortNames", path, errors);
    let (kind, list_kind) = (names.str_at("kind"), names.str_at("listKind"));
    if !kind.is_empty() && kind == list_kind {
        let detail = "kind and listKind may not be the same";
        errors.push(FieldError::invalid(&path.child("listKind").field(), list_kind, detail));
    }
    validate_labels(names, "categories", path, errors);
}

fn validate_labels(names: &Value, field: &str, path: &Path<'_>, errors: &mut ErrorList) {
    let path = path.child(field);
    for (index, name) in names.items_at(field).iter().enumerate() {
        let name = name.as_str().unwrap_or_default();
        let failures = is_dns1035_label(name);
        if !failures.is_empty() {
            errors.push(FieldError::invalid(&path.index(index).field(), name, failures.join(",")));
        }
    }
}
