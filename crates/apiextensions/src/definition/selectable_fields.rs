//! Validates the selectable fields
//! (<https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#crd-selectable-fields>).

use super::json_schema_props::JsonSchemaProps;
use super::options::ValidationOptions;
use super::path::Path;
use super::spec::{Spec, same};
use super::{structural_rules, valid_path};
use pintle_machinery::{ErrorList, FieldError, Value, ValueExt};
use std::collections::{HashMap, HashSet};

/// The maximum number of selectable fields, since the server computes each for every object.
const MAX_SELECTABLE_FIELDS: usize = 8;

/// Validates the selectable fields of a version, or (`version` is "") of all.
pub(super) fn validate_selectable_fields(
    fields: &[Value],
    schema: &JsonSchemaProps<'_>,
    path: &Path<'_>,
    version: &str,
    options: &ValidationOptions,
) -> ErrorList {
    let mut errors = ErrorList::new();
    let is_readable = structural_rules::unreadable(schema).is_none();
    let mut unique: Vec<String> = Vec::new();
    for (index, field) in fields.iter().enumerate() {
        let path = path.index(index);
        let path = path.child("jsonPath");
        let json_path = field.str_at("jsonPath");
        if json_path.is_empty() {
            errors.push(FieldError::required(&path.field(), ""));
            continue;
        }
        let found = match valid_path::follow(json_path, schema, false) {
            Ok(found) if is_readable => found,
            Ok(_) => continue,
            Err(error) => {
                let detail = format!("is an invalid path: {error}");
                errors.push(FieldError::invalid(&path.field(), json_path, detail));
                continue;
            }
        };
        if found.root == "metadata" {
            let detail = "must not point to fields in metadata";
            errors.push(FieldError::invalid(&path.field(), json_path, detail));
        }
        if !found.schema.is_some_and(|schema| matches!(schema.ty, "string" | "boolean" | "integer")) {
            let detail = "must point to a field of type string, boolean or integer. Enum string fields and strings \
                          with formats are allowed.";
            errors.push(FieldError::invalid(&path.field(), json_path, detail));
        }
        if unique.contains(&found.text) {
            errors.push(FieldError::duplicate(&path.field(), json_path));
        } else if unique.len() <= fields.len().min(MAX_TOLD_APART) {
            unique.push(found.text);
        }
    }
    let may_be_more = options.allow_too_many_selectable_fields.contains(version);
    if unique.len() > MAX_SELECTABLE_FIELDS && !may_be_more {
        errors.push(FieldError::too_many(&path.field(), unique.len(), MAX_SELECTABLE_FIELDS));
    }
    errors
}

/// The maximum number of fields that are checked for duplicates; longer lists are rejected anyway.
const MAX_TOLD_APART: usize = 4096;

/// The versions (and "" for the definition) that have too many fields, unchanged from the stored definition.
pub(super) fn too_many_unchanged(new: &Spec<'_>, old: &Spec<'_>) -> HashSet<String> {
    let list = |fields: &[Value]| Value::from(fields);
    let is_kept = |new: &[Value], old: &[Value]| {
        old.len() > MAX_SELECTABLE_FIELDS && same(Some(&list(new)), Some(&list(old)))
    };
    let mut kept = HashSet::new();
    if is_kept(new.common.selectable_fields, old.common.selectable_fields) {
        kept.insert(String::new());
    }
    // Of several versions with one name the last counts.
    let old: HashMap<&str, &[Value]> =
        old.versions.iter().map(|old| (old.name, old.own.selectable_fields)).collect();
    for version in &new.versions {
        if old.get(version.name).is_some_and(|old| is_kept(version.own.selectable_fields, old)) {
            kept.insert(version.name.to_owned());
        }
    }
    kept
}
