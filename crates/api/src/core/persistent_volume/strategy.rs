//! The strategy of persistent volumes. The source of a volume is immutable.

use super::source;
use super::spec::{self, Place};
use crate::core::pod_spec::{node_term_warnings, set_source_defaults};
use crate::core::volume::{CLASS_IS_CLOSED, STORAGE_CLASS_ANNOTATION};
use crate::gated_fields::{GatedFields, drop_disabled};
use crate::{resource_list, rules};
use pintle_feature_gates::{Gate, enabled};
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, Value, ValueExt, json,
    meta::format_time,
    validation::{label_selector_has_invalid_label_value, semantically_equal, validate_immutable_field},
};
use pintle_registry::{RequestContext, Strategy};

const NODE_TERMS: &str = "spec.nodeAffinity.required.nodeSelectorTerms";
const TRANSITION_TIME: &str = "status.lastPhaseTransitionTime";
const MOUNT_OPTIONS_ANNOTATION: &str = "volume.beta.kubernetes.io/mount-options";

const CLASS: &str = "spec.volumeAttributesClassName";
const GATED: &[GatedFields] = &[GatedFields { gates: &[Gate::VolumeAttributesClass], fields: &[CLASS] }];

pub(super) struct VolumeStrategy;

impl Strategy for VolumeStrategy {
    fn reset_fields(&self) -> &'static [&'static str] {
        &["status"]
    }

    fn set_defaults(&self, object: &mut Value) {
        for (path, default) in [("status.phase", "Pending"), ("spec.persistentVolumeReclaimPolicy", "Retain")]
        {
            if object.str_at(path).is_empty() {
                object.set(path, default);
            }
        }
        object.set_default("spec.volumeMode", "Filesystem");
        if let Some(spec) = object.at_mut("spec") {
            set_source_defaults(spec);
        }
        resource_list::round_up_at(object, &["spec.capacity"]);
    }

    fn prepare_for_create(&self, context: &RequestContext<'_>, object: &mut Value) {
        let status = json!({"phase": "Pending", "lastPhaseTransitionTime": format_time(context.now)});
        object.set("status", status);
        drop_disabled(GATED, object, None);
    }

    fn validate(&self, _context: &RequestContext<'_>, object: &Value) -> ErrorList {
        let mut errors = validate(object, false);
        errors.extend(validate_mount_options(object));
        errors
    }

    fn warnings_on_create(&self, _context: &RequestContext<'_>, object: &Value) -> Vec<String> {
        warnings(object)
    }

    fn prepare_for_update(&self, _context: &RequestContext<'_>, object: &mut Value, old: &Value) {
        rules::keep(object, old, "status");
        drop_disabled(GATED, object, Some(old));
    }

    fn validate_update(&self, _context: &RequestContext<'_>, object: &Value, old: &Value) -> ErrorList {
        let lenient = has_invalid_node_values(old);
        let mut errors = validate(object, lenient);
        errors.extend(validate_mount_options(object));
        errors.extend(validate(object, lenient));
        errors.extend(validate_kept(object, old));
        errors
    }

    fn warnings_on_update(&self, _context: &RequestContext<'_>, object: &Value, _old: &Value) -> Vec<String> {
        warnings(object)
    }

    fn returns_deleted_object(&self) -> bool {
        true
    }
}

/// The strategy of the `status` subresource.
pub(super) struct StatusStrategy;

impl Strategy for StatusStrategy {
    fn reset_fields(&self) -> &'static [&'static str] {
        &["spec"]
    }

    fn set_defaults(&self, object: &mut Value) {
        VolumeStrategy.set_defaults(object);
    }

    fn prepare_for_update(&self, context: &RequestContext<'_>, object: &mut Value, old: &Value) {
        rules::keep(object, old, "spec");
        let (time, old_time) = (object.at(TRANSITION_TIME), old.at(TRANSITION_TIME));
        let changes = rules::differs(object, old, "status.phase");
        if !changes && time.is_none() {
            rules::keep(object, old, TRANSITION_TIME);
        } else if changes && (time.is_none() || time == old_time) {
            object.set(TRANSITION_TIME, format_time(context.now));
        }
    }

    fn validate_update(&self, _context: &RequestContext<'_>, object: &Value, old: &Value) -> ErrorList {
        rules::metadata_update(object, old)
    }
}

/// Whether the old object has node selector values that are not valid for labels.
fn has_invalid_node_values(old: &Value) -> bool {
    old.items_at(NODE_TERMS).iter().any(label_selector_has_invalid_label_value)
}

const DEPRECATED_ANNOTATIONS: [(&str, &str); 2] = [
    (STORAGE_CLASS_ANNOTATION, "deprecated since v1.8; use \"storageClassName\" attribute instead"),
    (MOUNT_OPTIONS_ANNOTATION, "deprecated since v1.31; use \"mountOptions\" attribute instead"),
];

fn warnings(object: &Value) -> Vec<String> {
    let mut warnings = Vec::new();
    for (annotation, message) in DEPRECATED_ANNOTATIONS {
        if object.map_at("metadata.annotations").contains_key(annotation) {
            warnings.push(format!("{}: {message}", FieldPath::new("metadata.annotations").key(annotation)));
        }
    }
    if object.str_at("spec.persistentVolumeReclaimPolicy") == "Recycle" {
        warnings.push(
            "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the \
             recommended approach is to use dynamic provisioning."
                .to_owned(),
        );
    }
    for (index, term) in object.items_at(NODE_TERMS).iter().enumerate() {
        warnings.extend(node_term_warnings(term, false, &FieldPath::new(NODE_TERMS).index(index)));
    }
    warnings.extend(source::warnings(object));
    warnings
}

fn validate(object: &Value, lenient: bool) -> ErrorList {
    let mut errors = rules::metadata(object, false);
    let name = object.str_at("metadata.name");
    let spec = rules::value_at(object, "spec");
    errors.extend(spec::validate(spec, name, Place::Volume { lenient }, &FieldPath::new("spec")));
    errors
}

/// Rejects mount options on sources that do not support them.
fn validate_mount_options(object: &Value) -> Option<FieldError> {
    let is_annotated = object.map_at("metadata.annotations").contains_key(MOUNT_OPTIONS_ANNOTATION);
    (is_annotated && !source::has_mount_options(object)).then(|| {
        let path = FieldPath::new("metadata.annotations").child(MOUNT_OPTIONS_ANNOTATION);
        FieldError::forbidden(&path, "may not specify mount options for this volume type")
    })
}

fn validate_kept(object: &Value, old: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut new_source = source::of(object);
    let old_source = source::of(old);
    // The secret for expansion may be added to existing volumes.
    const EXPAND_SECRET: &str = "csi.controllerExpandSecretRef";
    if old_source.at("csi").is_some() && old_source.at(EXPAND_SECRET).is_none() {
        new_source.remove_at(EXPAND_SECRET);
    }
    if !semantically_equal(&new_source, &old_source) {
        let difference =
            pintle_internal_form::difference(&old_source, &new_source, "core.PersistentVolumeSource");
        let detail = format!("spec.persistentvolumesource is immutable after creation\n{difference}");
        errors.push(FieldError::forbidden(&FieldPath::new("spec.persistentvolumesource"), detail));
    }
    let kept = |path: &str, shown: &str| {
        let (new, old) = (rules::value_at(object, path), rules::value_at(old, path));
        validate_immutable_field(new, old, &FieldPath::new(shown))
    };
    errors.extend(kept("spec.volumeMode", "volumeMode"));
    if !enabled(Gate::MutablePVNodeAffinity) {
        errors.extend(validate_node_affinity_is_kept(object, old));
    }
    if !enabled(Gate::VolumeAttributesClass) && rules::differs(object, old, CLASS) {
        errors.push(FieldError::forbidden(&FieldPath::new(CLASS), CLASS_IS_CLOSED));
    }
    if old.at(CLASS).is_some() && object.at(CLASS).is_none() {
        let detail = "update from non-nil value to nil is forbidden";
        errors.push(FieldError::forbidden(&FieldPath::new(CLASS), detail));
    }
    errors
}

/// Renamed node labels.
const RENAMED_LABELS: [(&str, &str); 5] = [
    ("beta.kubernetes.io/arch", "kubernetes.io/arch"),
    ("beta.kubernetes.io/os", "kubernetes.io/os"),
    ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"),
    ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"),
    ("beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type"),
];

/// The new name of a node label; without one, "" as in the reference, which so takes an empty key for a renamed one.
fn renamed_label(label: &str) -> &'static str {
    RENAMED_LABELS.iter().find(|(old, _)| *old == label).map_or("", |(_, new)| *new)
}

/// Rejects changes of the node affinity, except for renamed labels.
fn validate_node_affinity_is_kept(object: &Value, old: &Value) -> Option<FieldError> {
    const AFFINITY: &str = "spec.nodeAffinity";
    let mut wanted = old.at(AFFINITY)?.clone();
    let new = rules::value_at(object, AFFINITY);
    const TERMS: &str = "required.nodeSelectorTerms";
    for (term, new_term) in wanted.items_at_mut(TERMS).iter_mut().zip(new.items_at(TERMS)) {
        for list in ["matchExpressions", "matchFields"] {
            let pairs = term.items_at_mut(list).iter_mut().zip(new_term.items_at(list));
            for (requirement, new_requirement) in pairs {
                let key = new_requirement.str_at("key");
                if renamed_label(requirement.str_at("key")) == key {
                    match new_requirement.at("key") {
                        Some(key) => requirement.set("key", key.clone()),
                        None => drop(requirement.remove_at("key")),
                    }
                }
            }
        }
    }
    let detail = "field is immutable, except for updating from beta label to GA";
    let path = FieldPath::new("nodeAffinity");
    (!semantically_equal(new, &wanted)).then(|| {
        let error = FieldError::invalid(&path, new.clone(), detail);
        pintle_internal_form::show(error, "*core.VolumeNodeAffinity")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_feature_gates::{EffectiveVersion, FeatureGates, MinorVersion, testing::override_gates};

    fn volume(spec: Value) -> Value {
        let mut volume = json!({
            "metadata": {"name": "v"},
            "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "volumeMode": "Filesystem"},
        });
        volume.object_at_mut("spec").extend(spec.as_object().unwrap().clone());
        volume
    }

    fn fields(errors: ErrorList) -> Vec<String> {
        errors.iter().map(|error| error.field.to_string()).collect()
    }

    #[test]
    fn volumes_have_one_source_and_storage_as_capacity() {
        let check = |spec: Value, wanted: &[&str]| assert_eq!(fields(validate(&volume(spec), false)), wanted);
        let path = json!({"path": "/d"});
        check(json!({"hostPath": path}), &[]);
        check(json!({}), &["spec"]);
        check(json!({"hostPath": path, "nfs": {"server": "s", "path": "/"}}), &["spec.nfs"]);
        check(json!({"hostPath": path, "capacity": {"cpu": "1"}}), &["spec.capacity"]);
        check(json!({"hostPath": path, "capacity": {"storage": "0"}}), &["spec.capacity[storage]"]);
        check(json!({"local": path}), &["spec.nodeAffinity"]);
        check(
            json!({"hostPath": {"path": "/a/..//"}, "persistentVolumeReclaimPolicy": "Recycle"}),
            &["spec.hostPath.path", "spec.persistentVolumeReclaimPolicy"],
        );
        check(json!({"hostPath": path, "volumeAttributesClassName": "c"}), &["spec.csi"]);
        check(json!({"csi": {"driver": "d"}}), &["spec.csi.volumeHandle"]);
    }

    #[test]
    fn sources_stay_and_labels_get_their_new_names() {
        let check = |old: Value, new: Value, wanted: &[&str]| {
            assert_eq!(fields(validate_kept(&volume(new), &volume(old))), wanted);
        };
        let path = |path: &str| json!({"hostPath": {"path": path}});
        let affinity = |key: &str| {
            json!({"nodeAffinity": {"required": {"nodeSelectorTerms": [
                {"matchExpressions": [{"key": key, "operator": "Exists"}]},
            ]}}})
        };
        check(path("/a"), path("/a"), &[]);
        check(path("/a"), path("/b"), &["spec.persistentvolumesource"]);
        check(json!({}), affinity("a"), &[]);
        check(affinity("a"), affinity("b"), &["nodeAffinity"]);
        check(affinity("beta.kubernetes.io/os"), affinity("kubernetes.io/os"), &[]);
        check(affinity("kubernetes.io/os"), affinity("beta.kubernetes.io/os"), &["nodeAffinity"]);
        // Other rules reject the empty key.
        let mut keyless = affinity("");
        check(affinity("kubernetes.io/os"), keyless.clone(), &[]);
        keyless["nodeAffinity"]["required"]["nodeSelectorTerms"][0]["matchExpressions"][0].remove_at("key");
        check(affinity("kubernetes.io/os"), keyless, &[]);
        let secret = json!({"name": "s", "namespace": "n"});
        let csi = json!({"driver": "d", "volumeHandle": "h"});
        let mut growing = csi.clone();
        growing.set("controllerExpandSecretRef", secret);
        check(json!({"csi": csi}), json!({"csi": growing}), &[]);
        check(json!({"csi": growing}), json!({"csi": csi}), &["spec.persistentvolumesource"]);
        check(json!({"volumeAttributesClassName": "a"}), json!({}), &["spec.volumeAttributesClassName"]);
        let _gates =
            override_gates(&FeatureGates::new(EffectiveVersion::emulating(MinorVersion::new(1, 33))));
        let classes = ["a", "b"].map(|class| json!({"volumeAttributesClassName": class}));
        check(classes[0].clone(), classes[1].clone(), &["spec.volumeAttributesClassName"]);
        let mut new = volume(classes[0].clone());
        drop_disabled(GATED, &mut new, None);
        assert_eq!(new.at(CLASS), None);
    }
}
