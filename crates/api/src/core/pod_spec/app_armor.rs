//! AppArmor profiles, in fields and in the annotations they were in before
//! (<https://kubernetes.io/docs/tutorials/security/apparmor/>).

use super::containers_of::{self, containers};
use pintle_machinery::{FieldPath, Value, ValueExt, meta::ObjectMeta, validation::semantically_equal};
use serde_json::json;

/// Annotations with this prefix and the name of a container hold its profile.
pub(crate) const ANNOTATION_PREFIX: &str = "container.apparmor.security.beta.kubernetes.io/";

/// The profile field that says the same as an annotation; `None` for one that says nothing known.
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

/// Gives containers of a new pod the field that their annotation stands for, where they have none.
pub(crate) fn set_fields_from_annotations(pod: &mut Value) {
    if pod.str_at("spec.os.name") == "windows" {
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
        let valid = |profile: &Value| {
            super::security_context::validate_app_armor_profile(profile, &FieldPath::default()).is_empty()
        };
        if let Some(profile) = field_for_annotation(annotation).filter(valid)
            && Some(&profile) != pod_profile.as_ref()
        {
            container.set("securityContext.appArmorProfile", profile);
        }
    });
}

/// Warnings for annotations of a new pod that its fields do not make superfluous. A field equal to the annotation counts
/// as taken from it.
pub(crate) fn annotation_warnings(pod: &Value) -> Vec<String> {
    let Some(spec) = pod.at("spec").filter(|spec| spec.str_at("os.name") != "windows") else {
        return Vec::new();
    };
    let annotations = FieldPath::new("metadata").child("annotations");
    let pod_profile = spec.at("securityContext.appArmorProfile");
    let mut warnings = Vec::new();
    for (_, container) in containers(spec) {
        let key = format!("{ANNOTATION_PREFIX}{}", container.str_at("name"));
        let Some(annotation) = pod.annotation(&key) else { continue };
        let from_annotation = field_for_annotation(annotation);
        let own = container.at("securityContext.appArmorProfile");
        let superfluous = match (own, &from_annotation) {
            (Some(own), Some(profile)) => !semantically_equal(own, profile),
            (Some(_), None) => true,
            (None, Some(profile)) => pod_profile.is_some_and(|pod| semantically_equal(pod, profile)),
            (None, None) => false,
        };
        if !superfluous {
            let field = annotations.key(&key);
            warnings
                .push(format!("{field}: deprecated since v1.30; use the \"appArmorProfile\" field instead"));
        }
    }
    warnings
}
