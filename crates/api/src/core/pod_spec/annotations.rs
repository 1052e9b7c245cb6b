//! Validates the annotations that have a meaning for pods. Fields have replaced most of them.

use super::app_armor::ANNOTATION_PREFIX as APP_ARMOR_PREFIX;
use super::containers_of::{containers, containers_with_path, has_annotations};
use super::{PodValidationOptions, paths, tolerations};
use crate::embedded_json::decode_list;
use pintle_go_forms::quote;
use pintle_machinery::{ErrorList, FieldError, FieldPath, Map, Value, ValueExt};
use std::collections::HashSet;

/// The annotation of mirror pods, which represent the static pods of a kubelet.
pub(crate) const MIRROR_POD: &str = "kubernetes.io/config.mirror";
const TOLERATIONS: &str = "scheduler.alpha.kubernetes.io/tolerations";
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
pub(super) const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
pub(super) const SECCOMP_CONTAINER_PREFIX: &str = "container.seccomp.security.alpha.kubernetes.io/";

fn text<'a>(annotations: &'a Map, key: &str) -> Option<&'a str> {
    annotations.get(key)?.as_str()
}

/// Validates the annotations of a pod or template.
pub fn validate_annotations(
    annotations: &Map,
    spec: &Value,
    path: &FieldPath,
    options: &PodValidationOptions,
) -> ErrorList {
    let mut errors = ErrorList::new();
    if let Some(value) = text(annotations, MIRROR_POD)
        && spec.str_at("nodeName").is_empty()
    {
        let detail = "must set spec.nodeName if mirror pod annotation is set";
        errors.push(FieldError::invalid(&path.key(MIRROR_POD), value, detail));
    }
    if let Some(value) = text(annotations, TOLERATIONS).filter(|value| !value.is_empty()) {
        match decode_list(value, &tolerations::GO_STRUCT) {
            Ok(list) => errors.extend(tolerations::validate(&list, options, &path.child(TOLERATIONS))),
            Err(error) => errors.push(FieldError::invalid(path, TOLERATIONS, error)),
        }
    }
    if !options.allow_invalid_pod_deletion_cost && !has_valid_deletion_cost(annotations) {
        let value = text(annotations, DELETION_COST).unwrap_or_default();
        errors.push(FieldError::invalid(&path.key(DELETION_COST), value, "must be a 32bit integer"));
    }
    if let Some(profile) = text(annotations, SECCOMP_POD) {
        errors.extend(validate_seccomp(profile, &path.child(SECCOMP_POD)));
    }
    for (key, value) in annotations {
        if key.starts_with(SECCOMP_CONTAINER_PREFIX) {
            errors.extend(validate_seccomp(value.as_str().unwrap_or_default(), &path.child(key)));
        }
    }
    let names: HashSet<&str> = containers(spec).map(|(_, container)| container.str_at("name")).collect();
    for (key, value) in annotations {
        let Some(name) = key.strip_prefix(APP_ARMOR_PREFIX) else { continue };
        if !names.contains(name) {
            errors.push(FieldError::invalid(&path.key(key), name, "container not found"));
        }
        let profile = value.as_str().unwrap_or_default();
        let known = matches!(profile, "" | "runtime/default" | "unconfined");
        if !known && !profile.starts_with("localhost/") {
            let detail = format!("invalid AppArmor profile name: {}", quote(profile));
            errors.push(FieldError::invalid(&path.key(key), profile, detail));
        }
    }
    errors
}

/// Whether the deletion cost is absent, or a 32-bit integer without plus sign and leading zeros.
pub(super) fn has_valid_deletion_cost(annotations: &Map) -> bool {
    let Some(cost) = text(annotations, DELETION_COST) else { return true };
    let canonical = cost == "0" || cost.starts_with(|c: char| matches!(c, '-' | '1'..='9'));
    canonical && cost.parse::<i32>().is_ok()
}

fn validate_seccomp(profile: &str, path: &FieldPath) -> ErrorList {
    match profile {
        "runtime/default" | "docker/default" | "unconfined" => ErrorList::new(),
        other => match other.strip_prefix("localhost/") {
            Some(file) => paths::validate_local_descending(file, path),
            None => vec![FieldError::invalid(path, profile, "must be a valid seccomp profile")],
        },
    }
}

/// Rejects annotations that contradict the field that replaced them, where both are set.
pub fn validate_annotations_match_fields(annotations: &Map, spec: &Value, path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    let context_path = path.child("securityContext");
    if let (Some(annotation), Some(profile)) =
        (text(annotations, SECCOMP_POD), spec.at("securityContext.seccompProfile"))
    {
        errors.extend(Mismatch::SECCOMP.check(annotation, profile, &context_path));
    }
    if has_annotations(annotations, SECCOMP_CONTAINER_PREFIX) {
        for (_, path, container) in containers_with_path(spec, path) {
            let key = format!("{SECCOMP_CONTAINER_PREFIX}{}", container.str_at("name"));
            if let (Some(annotation), Some(profile)) =
                (text(annotations, &key), container.at("securityContext.seccompProfile"))
            {
                errors.extend(Mismatch::SECCOMP.check(annotation, profile, &path.child("securityContext")));
            }
        }
    }
    if spec.str_at("os.name") == "windows" || !has_annotations(annotations, APP_ARMOR_PREFIX) {
        return errors;
    }
    let pod_profile = spec.at("securityContext.appArmorProfile");
    for (_, path, container) in containers_with_path(spec, path) {
        let key = format!("{APP_ARMOR_PREFIX}{}", container.str_at("name"));
        let profile = container.at("securityContext.appArmorProfile").or(pod_profile);
        if let (Some(annotation), Some(profile)) = (text(annotations, &key), profile) {
            errors.extend(Mismatch::APP_ARMOR.check(annotation, profile, &path.child("securityContext")));
        }
    }
    errors
}

/// Compares a profile in an annotation with the same profile in a field.
struct Mismatch {
    field: &'static str,
    what: &'static str,
    runtime_default: &'static [&'static str],
}

impl Mismatch {
    const SECCOMP: Mismatch = Mismatch {
        field: "seccompProfile",
        what: "seccomp",
        runtime_default: &["runtime/default", "docker/default"],
    };
    const APP_ARMOR: Mismatch =
        Mismatch { field: "appArmorProfile", what: "apparmor", runtime_default: &["runtime/default"] };

    fn check(&self, annotation: &str, profile: &Value, path: &FieldPath) -> Option<FieldError> {
        let path = path.child(self.field);
        let type_differs = || {
            let detail = format!("{} type in annotation and field must match", self.what);
            Some(FieldError::forbidden(&path.child("type"), detail))
        };
        match profile.str_at("type") {
            "Unconfined" if annotation != "unconfined" => type_differs(),
            "RuntimeDefault" if !self.runtime_default.contains(&annotation) => type_differs(),
            "Localhost" => match annotation.strip_prefix("localhost/") {
                None => type_differs(),
                Some(file) if profile.at("localhostProfile").and_then(Value::as_str) != Some(file) => {
                    let detail = format!("{} profile in annotation and field must match", self.what);
                    Some(FieldError::forbidden(&path.child("localhostProfile"), detail))
                }
                Some(_) => None,
            },
            _ => None,
        }
    }
}

/// Validates an update of the annotations of a pod.
pub(crate) fn validate_annotation_updates(
    new: &Map,
    old: &Map,
    spec: &Value,
    path: &FieldPath,
    options: &PodValidationOptions,
) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut check = |key: &str, verb: &str| {
        if key.starts_with(APP_ARMOR_PREFIX) {
            errors
                .push(FieldError::forbidden(&path.key(key), format!("may not {verb} AppArmor annotations")));
        }
        if key == MIRROR_POD {
            let detail = format!("may not {verb} mirror pod annotation");
            errors.push(FieldError::forbidden(&path.key(key), detail));
        }
    };
    for (key, value) in old {
        if new.get(key) != Some(value) {
            check(key, "remove or update");
        }
    }
    for key in new.keys().filter(|key| !old.contains_key(key)) {
        check(key, "add");
    }
    errors.extend(validate_annotations(new, spec, path, options));
    errors
}
