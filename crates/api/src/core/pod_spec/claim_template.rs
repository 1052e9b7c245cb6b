//! Validates the claim templates of generic ephemeral volumes
//! (<https://kubernetes.io/docs/concepts/storage/ephemeral-volumes/#generic-ephemeral-volumes>).

use super::resources::validate_quantity;
use crate::field_checks::{invalid_each, required, supported, texts};
use crate::resource_list::quantity;
use pintle_feature_gates::{Gate, enabled};
use pintle_machinery::validation::{
    LabelSelectorOptions, is_dns1123_label, is_dns1123_subdomain, label_selector_has_invalid_label_value,
    validate_annotations, validate_label_selector, validate_labels,
};
use pintle_machinery::{ErrorList, FieldError, FieldPath, Value, ValueExt, json};

/// Validates a `volumeClaimTemplate`.
pub(super) fn validate(template: &Value, path: &FieldPath) -> ErrorList {
    let mut errors = validate_metadata(template, path);
    let spec = template.at("spec").unwrap_or(&Value::Null);
    errors.extend(validate_claim_spec(spec, ClaimSpecOptions::default(), &path.child("spec")));
    errors
}

/// Validates the metadata of a claim template, which may contain only labels and annotations.
pub(crate) fn validate_metadata(template: &Value, path: &FieldPath) -> ErrorList {
    let metadata_path = path.child("metadata");
    let mut errors =
        validate_annotations(template.map_at("metadata.annotations"), &metadata_path.child("annotations"));
    errors.extend(validate_labels(template.map_at("metadata.labels"), &metadata_path.child("labels")));
    let metadata = template.map_at("metadata");
    let set = FORBIDDEN_METADATA
        .iter()
        .filter(|(field, _)| metadata.get(field).is_some_and(|value| !value.is_null()));
    errors.extend(set.map(|(_, shown)| FieldError::forbidden(&metadata_path.child(shown), "cannot be set")));
    errors
}

/// The fields of metadata other than labels and annotations in the order of the type, and their names in messages,
/// which are derived from those in Go.
const FORBIDDEN_METADATA: [(&str, &str); 13] = [
    ("name", "name"),
    ("generateName", "generateName"),
    ("namespace", "namespace"),
    ("selfLink", "selfLink"),
    ("uid", "uID"),
    ("resourceVersion", "resourceVersion"),
    ("generation", "generation"),
    ("creationTimestamp", "creationTimestamp"),
    ("deletionTimestamp", "deletionTimestamp"),
    ("deletionGracePeriodSeconds", "deletionGracePeriodSeconds"),
    ("ownerReferences", "ownerReferences"),
    ("finalizers", "finalizers"),
    ("managedFields", "managedFields"),
];

const ACCESS_MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

/// Invalid values that the spec of a claim may keep, since they are stored already.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ClaimSpecOptions {
    selector: LabelSelectorOptions,
    allow_invalid_api_group: bool,
    has_attributes_class: bool,
}

impl ClaimSpecOptions {
    /// The options for an update: selectors and API groups of data sources may stay as invalid as they are.
    pub(crate) fn for_update(old: &Value) -> ClaimSpecOptions {
        let had_invalid = old.at("selector").is_some_and(label_selector_has_invalid_label_value);
        let has_group = |source: &str| old.at(source).is_some_and(|source| source.at("apiGroup").is_some());
        ClaimSpecOptions {
            selector: LabelSelectorOptions { allow_invalid_label_value: had_invalid, ..Default::default() },
            has_attributes_class: old.at("volumeAttributesClassName").is_some(),
            allow_invalid_api_group: has_group("dataSource") || has_group("dataSourceRef"),
        }
    }
}

/// Validates the spec of a claim.
pub(crate) fn validate_claim_spec(spec: &Value, options: ClaimSpecOptions, path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    let modes_path = path.child("accessModes");
    let modes: Vec<&str> = texts(spec.items_at("accessModes")).collect();
    if modes.is_empty() {
        errors.push(FieldError::required(&modes_path, "at least 1 access mode is required"));
    }
    if let Some(selector) = spec.at("selector") {
        errors.extend(validate_label_selector(selector, options.selector, &path.child("selector")));
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
    errors.extend(validate_data_sources(spec, options, path));
    if enabled(Gate::VolumeAttributesClass) || options.has_attributes_class {
        errors.extend(class("volumeAttributesClassName"));
    }
    errors
}

fn validate_data_sources(spec: &Value, options: ClaimSpecOptions, path: &FieldPath) -> ErrorList {
    let (source, reference) = (spec.at("dataSource"), spec.at("dataSourceRef"));
    let mut errors = ErrorList::new();
    for (field, value) in [("dataSource", source), ("dataSourceRef", reference)] {
        if let Some(value) = value {
            errors.extend(validate_data_source(value, options, &path.child(field)));
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

fn validate_data_source(source: &Value, options: ClaimSpecOptions, path: &FieldPath) -> ErrorList {
    let (group, kind) = (source.str_at("apiGroup"), source.str_at("kind"));
    let mut errors: ErrorList =
        ["name", "kind"].iter().flat_map(|field| required(source, field, path)).collect();
    if group.is_empty() {
        if kind != "PersistentVolumeClaim" {
            let detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
            errors.push(FieldError::invalid(path, kind, detail));
        }
    } else if !options.allow_invalid_api_group {
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
    use pintle_feature_gates::{EffectiveVersion, FeatureGates, MinorVersion, testing::override_gates};

    #[test]
    fn an_emulated_version_does_not_check_attributes_classes() {
        let spec = json!({
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "volumeAttributesClassName": "A_B",
        });
        let count = |options| validate_claim_spec(&spec, options, &FieldPath::new("spec")).len();
        assert_eq!(count(ClaimSpecOptions::default()), 1);
        let _gates =
            override_gates(&FeatureGates::new(EffectiveVersion::emulating(MinorVersion::new(1, 33))));
        assert_eq!(count(ClaimSpecOptions::default()), 0);
        assert_eq!(count(ClaimSpecOptions::for_update(&spec)), 1);
    }

    #[test]
    fn fields_of_metadata_are_forbidden_in_the_order_of_the_type() {
        let template =
            json!({"metadata": {"uid": "u", "finalizers": ["f"], "name": "n", "labels": {"a": "b"}}});
        let errors = validate_metadata(&template, &FieldPath::new("t"));
        let fields: Vec<String> = errors.iter().map(|error| error.field.to_string()).collect();
        assert_eq!(fields, ["t.metadata.name", "t.metadata.uID", "t.metadata.finalizers"]);
    }

    #[test]
    fn stored_groups_of_data_sources_may_stay_invalid() {
        let spec = |group: &str| {
            json!({
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
                "dataSource": {"apiGroup": group, "kind": "K", "name": "n"},
            })
        };
        let check = |options| validate_claim_spec(&spec("-x"), options, &FieldPath::new("spec")).len();
        assert_eq!(check(ClaimSpecOptions::default()), 1);
        assert_eq!(check(ClaimSpecOptions::for_update(&spec("-y"))), 0);
        assert_eq!(check(ClaimSpecOptions::for_update(&json!({}))), 1);
    }

    #[test]
    fn data_sources_that_differ_are_shown_as_an_empty_object() {
        let spec = json!({
            "dataSource": {"kind": "PersistentVolumeClaim", "name": "x"},
            "dataSourceRef": {"kind": "PersistentVolumeClaim", "name": "z"},
        });
        let errors = validate_data_sources(&spec, ClaimSpecOptions::default(), &FieldPath::new("spec"));
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(errors, ["spec: Invalid value: {}: must match dataSourceRef"]);
    }
}
