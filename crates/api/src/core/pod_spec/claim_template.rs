//! Validates the claim templates of generic ephemeral volumes
//! (<https://kubernetes.io/docs/concepts/storage/ephemeral-volumes/#generic-ephemeral-volumes>).

use super::resources::validate_quantity;
use crate::field_checks::{invalid_each, required, supported, texts};
use crate::resource_list::quantity;
use pintle_machinery::validation::{
    LabelSelectorOptions, is_dns1123_label, is_dns1123_subdomain, validate_annotations,
    validate_label_selector, validate_labels,
};
use pintle_machinery::{ErrorList, FieldError, FieldPath, Value, ValueExt, json};

/// Validates a `volumeClaimTemplate`.
pub(super) fn validate(template: &Value, path: &FieldPath) -> ErrorList {
    let mut errors = validate_metadata(template, path);
    let spec = template.at("spec").unwrap_or(&Value::Null);
    errors.extend(validate_claim_spec(spec, &path.child("spec")));
    errors
}

/// Validates the metadata of a claim template, which may contain only labels and annotations.
pub(crate) fn validate_metadata(template: &Value, path: &FieldPath) -> ErrorList {
    let metadata_path = path.child("metadata");
    let mut errors =
        validate_annotations(template.map_at("metadata.annotations"), &metadata_path.child("annotations"));
    errors.extend(validate_labels(template.map_at("metadata.labels"), &metadata_path.child("labels")));
    for (field, value) in template.map_at("metadata") {
        if !matches!(field.as_str(), "annotations" | "labels") && !value.is_null() {
            errors.push(FieldError::forbidden(&metadata_path.child(field), "cannot be set"));
        }
    }
    errors
}

const ACCESS_MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

/// Validates the spec of a new claim.
pub(crate) fn validate_claim_spec(spec: &Value, path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    let modes_path = path.child("accessModes");
    let modes: Vec<&str> = texts(spec.items_at("accessModes")).collect();
    if modes.is_empty() {
        errors.push(FieldError::required(&modes_path, "at least 1 access mode is required"));
    }
    if let Some(selector) = spec.at("selector") {
        let options = LabelSelectorOptions::default();
        errors.extend(validate_label_selector(selector, options, &path.child("selector")));
    }
    errors.extend(modes.iter().flat_map(|mode| supported(mode, &ACCESS_MODES, &modes_path)));
    let is_shared = |mode: &&str| *mode != "ReadWriteOncePod" && ACCESS_MODES.contains(mode);
    if modes.contains(&"ReadWriteOncePod") && modes.iter().any(is_shared) {
        let detail = "may not use ReadWriteOncePod with other access modes";
        errors.push(FieldError::forbidden(&modes_path, detail));
    }
    let storage_path = path.child("resources").key("storage");
    match spec.map_at("resources.requests").get("storage") {
        None => errors.push(FieldError::required(&storage_path, "")),
        Some(value) if quantity(value).sign() <= 0 => {
            let value = quantity(value).to_string();
            errors.push(FieldError::invalid(&storage_path, value, "must be greater than zero"));
        }
        Some(value) => errors.extend(validate_quantity("storage", value, &storage_path)),
    }
    let class = |field: &str| {
        let name = spec.str_at(field);
        let messages = if name.is_empty() { Vec::new() } else { is_dns1123_subdomain(name) };
        invalid_each(&path.child(field), name, messages)
    };
    errors.extend(class("storageClassName"));
    if spec.at("volumeMode").is_some() {
        let modes = ["Block", "Filesystem"];
        errors.extend(supported(spec.str_at("volumeMode"), &modes, &path.child("volumeMode")));
    }
    errors.extend(validate_data_sources(spec, path));
    errors.extend(class("volumeAttributesClassName"));
    errors
}

fn validate_data_sources(spec: &Value, path: &FieldPath) -> ErrorList {
    let (source, reference) = (spec.at("dataSource"), spec.at("dataSourceRef"));
    let mut errors = ErrorList::new();
    for (field, value) in [("dataSource", source), ("dataSourceRef", reference)] {
        if let Some(value) = value {
            errors.extend(validate_data_source(value, &path.child(field)));
        }
    }
    let (Some(source), Some(reference)) = (source, reference) else { return errors };
    // `dataSource` has no namespace, so that of `dataSourceRef` is not compared.
    let differs = ["apiGroup", "kind", "name"].iter().any(|field| source.at(field) != reference.at(field));
    let detail = if !reference.str_at("namespace").is_empty() {
        "may not be specified when dataSourceRef.namespace is specified"
    } else if differs {
        "must match dataSourceRef"
    } else {
        return errors;
    };
    // The reference shows a value of a type without public fields.
    errors.push(FieldError::invalid(path, json!({}), detail));
    errors
}

fn validate_data_source(source: &Value, path: &FieldPath) -> ErrorList {
    let (group, kind) = (source.str_at("apiGroup"), source.str_at("kind"));
    let mut errors: ErrorList =
        ["name", "kind"].iter().flat_map(|field| required(source, field, path)).collect();
    if group.is_empty() {
        if kind != "PersistentVolumeClaim" {
            let detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
            errors.push(FieldError::invalid(path, kind, detail));
        }
    } else {
        errors.extend(invalid_each(&path.child("apiGroup"), group, is_dns1123_subdomain(group)));
    }
    let namespace = source.str_at("namespace");
    if !namespace.is_empty() {
        errors.extend(invalid_each(&path.child("namespace"), namespace, is_dns1123_label(namespace)));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_sources_that_differ_are_shown_as_an_empty_object() {
        let spec = json!({
            "dataSource": {"kind": "PersistentVolumeClaim", "name": "x"},
            "dataSourceRef": {"kind": "PersistentVolumeClaim", "name": "z"},
        });
        let errors = validate_data_sources(&spec, &FieldPath::new("spec"));
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(errors, ["spec: Invalid value: {}: must match dataSourceRef"]);
    }
}
