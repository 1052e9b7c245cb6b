//! AppArmor profiles: fields, and the annotations that preceded them
//! (<https://kubernetes.io/docs/tutorials/security/apparmor/>).

use super::containers_of::{self, containers, has_annotations};
use pintle_machinery::{FieldPath, Value, ValueExt, json, meta::ObjectMeta, validation::semantically_equal};

/// The prefix of the annotations that hold the profile of a container; the container's name follows it.
pub(crate) const ANNOTATION_PREFIX: &str = "container.apparmor.security.beta.kubernetes.io/";

/// The profile field equivalent to an annotation; `None` for an unknown profile.
pub(crate) fn field_for_annotation(annotation: &str) -> Option<Value> {
    match annotation {
        "unconfined" => Some(json!({"type": "Unconfined"})),
        "runtime/default" => Some(json!({"type": "RuntimeDefault"})),
        other => match other.strip_prefix("localhost/")? {
            "" => None,
            profile => Some(json!({"type": "Localhost", "localhostProfile": profile})),
        },
    }
}

/// Sets the profile field of a new pod's containers from their annotations, where the field is absent.
pub(crate) fn set_fields_from_annotations(pod: &mut Value) {
    if pod.str_at("spec.os.name") == "windows" {
        return;
    }
    if !has_annotations(pod.map_at("metadata.annotations"), ANNOTATION_PREFIX) {
        return;
    }
    let annotations = pod.map_at("metadata.annotations").clone();
    let pod_profile = pod.at("spec.securityContext.appArmorProfile").cloned();
    let Some(spec) = pod.at_mut("spec") else { return };
    containers_of::for_each_mut(spec, |_, container| {
        let key = format!("{ANNOTATION_PREFIX}{}", container.str_at("name"));
        let Some(annotation) = annotations.get(&key).and_then(Value::as_str) else { return };
        if container.at("securityContext.appArmorProfile").is_some() {
            return;
        }
        if let Some(profile) = valid_field_for_annotation(annotation)
            && Some(&profile) != pod_profile.as_ref()
        {
            container.set("securityContext.appArmorProfile", profile);
        }
    });
}

/// Deprecation warnings for the annotations of a new pod, before [`set_fields_from_annotations`]. An annotation beside the
/// container's field, or equal to the pod's field, gives no warning.
pub(crate) fn annotation_warnings(pod: &Value) -> Vec<String> {
    let Some(spec) = pod.at("spec").filter(|spec| spec.str_at("os.name") != "windows") else {
        return Vec::new();
    };
    if !has_annotations(pod.map_at("metadata.annotations"), ANNOTATION_PREFIX) {
        return Vec::new();
    }
    let annotations = FieldPath::new("metadata").child("annotations");
    let pod_profile = spec.at("securityContext.appArmorProfile");
    let mut warnings = Vec::new();
    for (_, container) in containers(spec) {
        let key = format!("{ANNOTATION_PREFIX}{}", container.str_at("name"));
        let Some(annotation) = pod.annotation(&key) else { continue };
        if container.at("securityContext.appArmorProfile").is_some() {
            continue;
        }
        let profile = valid_field_for_annotation(annotation);
        let is_of_pod = |profile: &Value| pod_profile.is_some_and(|pod| semantically_equal(pod, profile));
        if !profile.as_ref().is_some_and(is_of_pod) {
            let field = annotations.key(&key);
            warnings
                .push(format!("{field}: deprecated since v1.30; use the \"appArmorProfile\" field instead"));
        }
    }
    warnings
}

/// The field for an annotation; `None` when that would not be valid.
fn valid_field_for_annotation(annotation: &str) -> Option<Value> {
    let is_valid = |profile: &Value| {
        super::security_context::validate_app_armor_profile(profile, &FieldPath::default()).is_empty()
    };
    field_for_annotation(annotation).filter(is_valid)
}
