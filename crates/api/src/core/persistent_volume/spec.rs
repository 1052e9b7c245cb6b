//! Validates the spec of a volume, in a persistent volume or inline in an attachment.

use super::source;
use crate::core::pod_spec::affinity::validate_node_selector;
use crate::core::volume::validate_amount;
use crate::field_checks::{invalid_each, supported, texts};
use crate::resource_list::quantity;
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, Map, Value, ValueExt, validation::is_dns1123_subdomain,
};

const ACCESS_MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
const SINGLE_POD: &str = "ReadWriteOncePod";
const NOT_INLINE: &str = "may not be specified in the context of inline volumes";

/// The position of a spec.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// In a volume; `lenient` accepts values in node selectors that are not valid for labels.
    Volume { lenient: bool },
    /// In an attachment of a volume without a persistent volume.
    Inline,
}

/// Validates a spec; `name` is that of the volume.
pub(crate) fn validate(spec: &Value, name: &str, place: Place, path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    if place == Place::Inline {
        let is_set = |field: &&str| spec.at(field).is_some();
        let refused = ["claimRef", "capacity"].into_iter().filter(is_set);
        errors.extend(refused.map(|field| FieldError::forbidden(&path.child(field), NOT_INLINE)));
        if spec.at("csi").is_none() {
            let detail = "has to be specified in the context of inline volumes";
            errors.push(FieldError::required(&path.child("csi"), detail));
        }
    }
    errors.extend(validate_access_modes(spec, &path.child("accessModes")));
    if place != Place::Inline {
        errors.extend(validate_capacity(spec.map_at("capacity"), &path.child("capacity")));
    }
    errors.extend(validate_reclaim_policy(spec, place, &path.child("persistentVolumeReclaimPolicy")));
    if spec.at("nodeAffinity").is_some() {
        errors.extend(validate_node_affinity(spec, place, &path.child("nodeAffinity")));
    }
    errors.extend(source::validate(spec, name, path));
    if spec.str_at("persistentVolumeReclaimPolicy") == "Recycle" && is_root(spec.str_at("hostPath.path")) {
        let detail = "may not be 'recycle' for a hostPath mount of '/'";
        errors.push(FieldError::forbidden(&path.child("persistentVolumeReclaimPolicy"), detail));
    }
    errors.extend(validate_class(spec, place, &path.child("storageClassName")));
    if spec.at("volumeMode").is_some() {
        errors.extend(validate_mode(spec.str_at("volumeMode"), place, &path.child("volumeMode")));
    }
    if place != Place::Inline {
        errors.extend(validate_attributes_class(spec, path));
    }
    errors
}

fn validate_access_modes(spec: &Value, path: &FieldPath) -> ErrorList {
    let modes: Vec<&str> = texts(spec.items_at("accessModes")).collect();
    let mut errors = ErrorList::new();
    if modes.is_empty() {
        errors.push(FieldError::required(path, ""));
    }
    errors.extend(modes.iter().flat_map(|mode| supported(mode, &ACCESS_MODES, path)));
    let is_shared = |mode: &&str| *mode != SINGLE_POD && ACCESS_MODES.contains(mode);
    if modes.contains(&SINGLE_POD) && modes.iter().any(is_shared) {
        let detail = "may not use ReadWriteOncePod with other access modes";
        errors.push(FieldError::forbidden(path, detail));
    }
    errors
}

fn validate_capacity(capacity: &Map, path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    if capacity.is_empty() {
        errors.push(FieldError::required(path, ""));
    }
    if !capacity.contains_key("storage") || capacity.len() > 1 {
        let shown = if capacity.is_empty() { Value::Null } else { Value::Object(capacity.clone()) };
        errors.push(FieldError::not_supported(path, shown, &["storage"]));
    }
    for (name, value) in capacity {
        let path = path.key(name);
        errors.extend(validate_amount(value, &path));
        let quantity = quantity(value);
        if quantity.sign() <= 0 {
            errors.push(FieldError::invalid(&path, quantity.to_string(), "must be greater than zero"));
        }
    }
    errors
}

fn validate_reclaim_policy(spec: &Value, place: Place, path: &FieldPath) -> ErrorList {
    match (spec.str_at("persistentVolumeReclaimPolicy"), place) {
        ("", _) | ("Retain", Place::Inline) => ErrorList::new(),
        (_, Place::Inline) => {
            vec![FieldError::forbidden(path, "may only be Retain in the context of inline volumes")]
        }
        (policy, Place::Volume { .. }) => supported(policy, &["Delete", "Recycle", "Retain"], path),
    }
}

fn validate_node_affinity(spec: &Value, place: Place, path: &FieldPath) -> ErrorList {
    let Place::Volume { lenient } = place else { return vec![FieldError::forbidden(path, NOT_INLINE)] };
    let path = path.child("required");
    match spec.at("nodeAffinity.required") {
        Some(selector) => validate_node_selector(selector, lenient, &path),
        None => vec![FieldError::required(&path, "must specify required node constraints")],
    }
}

/// Whether a path leads to the root once its dots are resolved.
fn is_root(path: &str) -> bool {
    if !path.starts_with('/') {
        return false;
    }
    let mut depth = 0_usize;
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => depth = depth.saturating_sub(1),
            _ => depth += 1,
        }
    }
    depth == 0
}

fn validate_class(spec: &Value, place: Place, path: &FieldPath) -> ErrorList {
    match (spec.str_at("storageClassName"), place) {
        ("", _) => ErrorList::new(),
        (_, Place::Inline) => vec![FieldError::forbidden(path, NOT_INLINE)],
        (class, Place::Volume { .. }) => invalid_each(path, class, is_dns1123_subdomain(class)),
    }
}

fn validate_mode(mode: &str, place: Place, path: &FieldPath) -> ErrorList {
    match (mode, place) {
        (_, Place::Volume { .. }) => supported(mode, &["Block", "Filesystem"], path),
        ("Filesystem", Place::Inline) => ErrorList::new(),
        (_, Place::Inline) => {
            let detail = "may not specify volumeMode other than Filesystem in the context of inline volumes";
            vec![FieldError::forbidden(path, detail)]
        }
    }
}

fn validate_attributes_class(spec: &Value, path: &FieldPath) -> ErrorList {
    let Some(class) = spec.at("volumeAttributesClassName").and_then(Value::as_str) else {
        return ErrorList::new();
    };
    let class_path = path.child("volumeAttributesClassName");
    let mut errors = match class {
        "" => vec![FieldError::required(&class_path, "an empty string is disallowed")],
        _ => invalid_each(&class_path, class, is_dns1123_subdomain(class)),
    };
    if spec.at("csi").is_none() {
        let detail = "has to be specified when using volumeAttributesClassName";
        errors.push(FieldError::required(&path.child("csi"), detail));
    }
    errors
}
