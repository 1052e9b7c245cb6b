//! The strategy of claims. The spec of a claim is immutable, except that a bound claim may change its requested storage
//! and its volume attributes class.

use crate::core::pod_spec::claim_template::{ClaimSpecOptions, validate_claim_spec};
use crate::core::pod_spec::fraction_warning;
use crate::core::volume::{CLASS_IS_CLOSED, STORAGE_CLASS_ANNOTATION, validate_amount};
use crate::gated_fields::{GatedFields, drop_disabled};
use crate::resource_list::{self, is_native, quantity};
use crate::{field_checks, rules};
use pintle_feature_gates::{Gate, enabled};
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, Map, Value, ValueExt, json,
    validation::{is_qualified_name, semantically_equal, validate_immutable_field},
};
use pintle_registry::{EmptyFields, RequestContext, Strategy};

const RESIZE_STATUSES: [&str; 5] = [
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
];

const CLASS: &str = "spec.volumeAttributesClassName";
const GATED: &[GatedFields] = &[GatedFields { gates: &[Gate::VolumeAttributesClass], fields: &[CLASS] }];
/// The fields of the status, each behind the gate by itself.
const GATED_STATUS: &[GatedFields] = &[
    GatedFields {
        gates: &[Gate::VolumeAttributesClass],
        fields: &["status.currentVolumeAttributesClassName"],
    },
    GatedFields { gates: &[Gate::VolumeAttributesClass], fields: &["status.modifyVolumeStatus"] },
];

pub(super) struct ClaimStrategy;

impl Strategy for ClaimStrategy {
    fn reset_fields(&self) -> &'static [&'static str] {
        &["status"]
    }

    fn set_defaults(&self, object: &mut Value) {
        if object.str_at("status.phase").is_empty() {
            object.set("status.phase", "Pending");
        }
        object.set_default("spec.volumeMode", "Filesystem");
        resource_list::round_up_at(
            object,
            &[
                "spec.resources.limits",
                "spec.resources.requests",
                "status.capacity",
                "status.allocatedResources",
            ],
        );
    }

    /// Claims of servers before v1.24 can have one of the two fields for the data source.
    fn default_on_read(&self, object: &mut Value) {
        complete_data_sources(object);
    }

    fn prepare_for_create(&self, _context: &RequestContext<'_>, object: &mut Value) {
        object.set("status", json!({"phase": "Pending"}));
        drop_disabled(GATED, object, None);
        prepare_data_sources(object, None);
    }

    fn validate(&self, _context: &RequestContext<'_>, object: &Value) -> ErrorList {
        validate(object, None)
    }

    fn warnings_on_create(&self, _context: &RequestContext<'_>, object: &Value) -> Vec<String> {
        warnings(object)
    }

    fn prepare_for_update(&self, _context: &RequestContext<'_>, object: &mut Value, old: &Value) {
        rules::keep(object, old, "status");
        drop_disabled(GATED, object, Some(old));
        prepare_data_sources(object, Some(old));
    }

    fn validate_update(&self, context: &RequestContext<'_>, object: &Value, old: &Value) -> ErrorList {
        validate_update(object, old, context.empty_fields)
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
        ClaimStrategy.set_defaults(object);
    }

    fn prepare_for_update(&self, _context: &RequestContext<'_>, object: &mut Value, old: &Value) {
        rules::keep(object, old, "spec");
        drop_disabled(GATED_STATUS, object, Some(old));
    }

    fn validate_update(&self, _context: &RequestContext<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = rules::metadata_update(object, old);
        errors.extend(validate_status(object));
        errors
    }
}

/// Removes data sources that are not enabled, and completes the others. The older field is ignored when its value is
/// allowed only in the newer one.
fn prepare_data_sources(object: &mut Value, old: Option<&Value>) {
    let had = |path: &str| old.is_some_and(|old| old.at(path).is_some());
    if !enabled(Gate::CrossNamespaceVolumeDataSource)
        && !object.str_at("spec.dataSourceRef.namespace").is_empty()
        && !had("spec.dataSourceRef")
    {
        object.remove_at("spec.dataSourceRef");
    }
    let had_source = had("spec.dataSource") || had("spec.dataSourceRef");
    if !had_source && object.at("spec.dataSourceRef").is_none() && !is_claim_or_snapshot(object) {
        object.remove_at("spec.dataSource");
    }
    complete_data_sources(object);
}

/// Synchronizes the two fields for the data source: each is set from the other.
fn complete_data_sources(object: &mut Value) {
    let copy = |from: &Value| {
        let members = ["apiGroup", "kind", "name"].into_iter();
        let members = members.filter_map(|name| Some((name.to_owned(), from.at(name)?.clone())));
        members.collect::<Map>()
    };
    match (object.at("spec.dataSource"), object.at("spec.dataSourceRef")) {
        (Some(source), None) => {
            let copy = copy(source);
            object.set("spec.dataSourceRef", copy);
        }
        (None, Some(reference)) if reference.str_at("namespace").is_empty() => {
            let copy = copy(reference);
            object.set("spec.dataSource", copy);
        }
        _ => {}
    }
}

fn is_claim_or_snapshot(object: &Value) -> bool {
    let group = object.str_at("spec.dataSource.apiGroup");
    matches!(
        (group, object.str_at("spec.dataSource.kind")),
        ("", "PersistentVolumeClaim") | ("snapshot.storage.k8s.io", "VolumeSnapshot")
    )
}

fn warnings(object: &Value) -> Vec<String> {
    let mut warnings = Vec::new();
    if object.map_at("metadata.annotations").contains_key(STORAGE_CLASS_ANNOTATION) {
        let field = FieldPath::new("metadata.annotations").key(STORAGE_CLASS_ANNOTATION);
        warnings.push(format!("{field}: deprecated since v1.8; use \"storageClassName\" attribute instead"));
    }
    for list in ["spec.resources.requests", "spec.resources.limits"] {
        warnings.extend(fraction_warning(object, list, "storage", &FieldPath::new(list)));
    }
    warnings
}

fn validate(object: &Value, old: Option<&Value>) -> ErrorList {
    let mut errors = rules::metadata(object, true);
    let options = old.and_then(|old| old.at("spec")).map(ClaimSpecOptions::for_update).unwrap_or_default();
    errors.extend(validate_claim_spec(rules::value_at(object, "spec"), options, &FieldPath::new("spec")));
    errors
}

fn validate_update(object: &Value, old: &Value, empty_fields: &EmptyFields) -> ErrorList {
    let mut errors = rules::metadata_update(object, old);
    errors.extend(validate(object, Some(old)));
    let annotation = |object: &Value| {
        let value = object.map_at("metadata.annotations").get(STORAGE_CLASS_ANNOTATION);
        value.and_then(Value::as_str).map(str::to_owned)
    };
    let class =
        |object: &Value| object.at("spec.storageClassName").and_then(Value::as_str).map(str::to_owned);
    let (new_annotation, old_annotation) = (annotation(object), annotation(old));
    let (new_class, old_class) = (class(object), class(old));
    // A class in the annotation may move to the field.
    let moves = old_annotation.is_some()
        && old_class.is_none()
        && new_class == old_annotation
        && (new_annotation.is_none() || new_annotation == old_annotation);
    if !moves && new_annotation.clone().unwrap_or_default() != old_annotation.clone().unwrap_or_default() {
        let path = FieldPath::new("metadata.annotations").child(STORAGE_CLASS_ANNOTATION);
        let value = new_annotation.unwrap_or_default();
        errors.push(FieldError::invalid(&path, value, "field is immutable"));
    }
    let is_first = old_class.is_none()
        && new_class.is_some()
        && (old_annotation.is_none() || old_annotation == new_class);
    let (new, mut old_spec) =
        (comparable(object, old, moves || is_first, empty_fields), rules::value_at(old, "spec").clone());
    const NAME: &str = "volumeName";
    if let Some(name) = object.at("spec.volumeName").filter(|_| old_spec.str_at(NAME).is_empty()) {
        // A name may be set once, and counts as that of both.
        old_spec.set(NAME, name.clone());
    }
    let new_spec = rules::value_at(&new, "spec");
    if !semantically_equal(new_spec, &old_spec) {
        let difference =
            pintle_internal_form::difference(&old_spec, new_spec, "core.PersistentVolumeClaimSpec");
        let detail = format!(
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound \
             claims\n{difference}"
        );
        errors.push(FieldError::forbidden(&FieldPath::new("spec"), detail));
    }
    errors.extend(validate_shrinking(object, old));
    errors.extend(validate_immutable_field(
        rules::value_at(object, "spec.volumeMode"),
        rules::value_at(old, "spec.volumeMode"),
        &FieldPath::new("volumeMode"),
    ));
    errors.extend(validate_attributes_class(object, old));
    errors
}

/// An object with the new spec without the allowed changes, but for the first name of a volume.
fn comparable(object: &Value, old: &Value, class_may_change: bool, empty_fields: &EmptyFields) -> Value {
    let mut claim = json!({"spec": rules::value_at(object, "spec").clone()});
    if class_may_change {
        rules::keep(&mut claim, old, "spec.storageClassName");
    }
    if object.str_at("status.phase") == "Bound" {
        rules::keep(&mut claim, old, "spec.volumeAttributesClassName");
        const REQUESTS: &str = "spec.resources.requests";
        if claim.at(REQUESTS).is_some() || empty_fields.contains(REQUESTS) {
            rules::keep(&mut claim, old, "spec.resources.requests.storage");
        }
    }
    claim
}

/// Allows a smaller request to recover from a failed expansion, but not below the current capacity.
fn validate_shrinking(object: &Value, old: &Value) -> Option<FieldError> {
    let size =
        |object: &Value, list: &str| object.map_at(list).get("storage").map(quantity).unwrap_or_default();
    let requests = "spec.resources.requests";
    let new = size(object, requests);
    (new < size(old, requests) && new <= size(old, "status.capacity")).then(|| {
        let path = FieldPath::new(requests).child("storage");
        FieldError::forbidden(&path, "field can not be less than status.capacity")
    })
}

fn validate_attributes_class(object: &Value, old: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    if !enabled(Gate::VolumeAttributesClass) && rules::differs(object, old, CLASS) {
        errors.push(FieldError::forbidden(&FieldPath::new(CLASS), CLASS_IS_CLOSED));
    }
    errors.extend(validate_class_is_kept(object, old));
    errors
}

/// A class that has been applied is not removed.
fn validate_class_is_kept(object: &Value, old: &Value) -> Option<FieldError> {
    if old.at("status.currentVolumeAttributesClassName").is_none() || !rules::differs(object, old, CLASS) {
        return None;
    }
    let what = match object.at(CLASS).and_then(Value::as_str) {
        None => "nil",
        Some("") => "empty string",
        Some(_) => return None,
    };
    let detail =
        format!("update to {what} is forbidden when status.currentVolumeAttributesClassName is not nil");
    Some(FieldError::forbidden(&FieldPath::new(CLASS), detail))
}

fn validate_status(object: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    if object.items_at("spec.accessModes").is_empty() {
        errors.push(FieldError::required(&FieldPath::new("Spec.accessModes"), ""));
    }
    let path = FieldPath::new("status.capacity");
    for (name, value) in object.map_at("status.capacity") {
        errors.extend(validate_amount(value, &path.key(name)));
    }
    let path = FieldPath::new("status.allocatedResourceStatuses");
    for (name, status) in object.map_at("status.allocatedResourceStatuses") {
        errors.extend(validate_resource_key(name, &path));
        if !RESIZE_STATUSES.contains(&status.as_str().unwrap_or_default()) {
            errors.push(FieldError::not_supported(&path, name.as_str(), &RESIZE_STATUSES));
        }
    }
    let path = FieldPath::new("status.allocatedResources");
    for (name, value) in object.map_at("status.allocatedResources") {
        let wrong = validate_resource_key(name, &path);
        if wrong.is_empty() {
            errors.extend(validate_amount(value, &path.key(name)));
        }
        errors.extend(wrong);
    }
    errors
}

fn validate_resource_key(name: &str, path: &FieldPath) -> ErrorList {
    let errors = field_checks::invalid_each(path, name, is_qualified_name(name));
    if errors.is_empty() && is_native(name) {
        return field_checks::supported_plain(name, &["storage"], path);
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_feature_gates::{EffectiveVersion, FeatureGates, MinorVersion, testing::override_gates};
    use pintle_machinery::codec::EmptyField;

    fn claim(spec: Value, phase: &str) -> Value {
        let mut claim = json!({
            "metadata": {"name": "c", "namespace": "n", "resourceVersion": "1", "uid": "u"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}},
            "status": {"phase": phase, "capacity": {"storage": "1Gi"}},
        });
        claim.object_at_mut("spec").extend(spec.as_object().unwrap().clone());
        claim
    }

    #[test]
    fn an_emulated_version_has_no_attributes_classes() {
        let _gates =
            override_gates(&FeatureGates::new(EffectiveVersion::emulating(MinorVersion::new(1, 33))));
        let old = claim(json!({"volumeAttributesClassName": "a"}), "Bound");
        let new = claim(json!({"volumeAttributesClassName": "b"}), "Bound");
        let errors = validate_attributes_class(&new, &old);
        let detail = "update is forbidden when the VolumeAttributesClass feature gate is disabled";
        assert_eq!(errors, [FieldError::forbidden(&FieldPath::new(CLASS), detail)]);
        let mut dropped = new.clone();
        drop_disabled(GATED, &mut dropped, None);
        assert_eq!(dropped, claim(json!({}), "Bound"));
        let status =
            json!({"currentVolumeAttributesClassName": "a", "modifyVolumeStatus": {"status": "Pending"}});
        let mut written = json!({"status": status});
        drop_disabled(
            GATED_STATUS,
            &mut written,
            Some(&json!({"status": {"currentVolumeAttributesClassName": "b"}})),
        );
        assert_eq!(written["status"], json!({"currentVolumeAttributesClassName": "a"}));
    }

    #[test]
    fn only_bound_claims_grow() {
        let check = |old: Value, new: Value, phase: &str, fields: &[&str]| {
            let errors = validate_update(&claim(new, phase), &claim(old, phase), &EmptyFields::default());
            let got: Vec<String> = errors.iter().map(|error| error.field.to_string()).collect();
            assert_eq!(got, fields);
        };
        let size = |size: &str| json!({"resources": {"requests": {"storage": size}}});
        check(json!({}), size("3Gi"), "Bound", &[]);
        check(json!({}), size("3Gi"), "Pending", &["spec"]);
        check(json!({}), size("1.5Gi"), "Bound", &[]);
        check(json!({}), size("1Gi"), "Bound", &["spec.resources.requests.storage"]);
        check(json!({}), json!({"volumeName": "v"}), "Pending", &[]);
        check(json!({"volumeName": "v"}), json!({"volumeName": "w"}), "Pending", &["spec"]);
        check(json!({}), json!({"storageClassName": "s"}), "Pending", &[]);
        check(json!({"storageClassName": "s"}), json!({"storageClassName": "t"}), "Bound", &["spec"]);
        check(json!({}), json!({"volumeAttributesClassName": "g"}), "Bound", &[]);
        // Only requests that are there, if empty, are left out of the comparison.
        let fields = ["spec.resources[storage]", "spec", "spec.resources.requests.storage"];
        check(json!({}), json!({"resources": {}}), "Bound", &fields);
        let empty_fields = EmptyFields::default();
        let empty = EmptyField { path: "spec.resources.requests".to_owned(), value: json!({}) };
        empty_fields.set(vec![empty]);
        let new = claim(json!({"resources": {}}), "Bound");
        let errors = validate_update(&new, &claim(json!({}), "Bound"), &empty_fields);
        assert!(errors.iter().all(|error| error.field.to_string() != "spec"), "{errors:?}");
        // The difference has the first name of a volume on both sides.
        let shows = |new: Value, text: &str| {
            let errors = validate_update(&claim(new, "Pending"), &claim(json!({}), "Pending"), &empty_fields);
            let spec = errors.iter().find(|error| error.field.to_string() == "spec").unwrap();
            assert!(spec.to_string().contains(text), "{spec}");
        };
        shows(json!({"volumeName": "v", "volumeMode": "Block"}), "\n  \"VolumeName\": \"v\",\n");
    }

    #[test]
    fn data_sources_follow_from_each_other() {
        let check = |given: Value, source: Value, reference: Value| {
            let mut object = json!({"spec": given});
            prepare_data_sources(&mut object, None);
            assert_eq!(*rules::value_at(&object, "spec.dataSource"), source);
            assert_eq!(*rules::value_at(&object, "spec.dataSourceRef"), reference);
        };
        let claim = json!({"kind": "PersistentVolumeClaim", "name": "c"});
        let other = json!({"apiGroup": "a.example.com", "kind": "Thing", "name": "c"});
        let elsewhere = json!({"kind": "PersistentVolumeClaim", "name": "c", "namespace": "n"});
        check(json!({"dataSource": claim}), claim.clone(), claim.clone());
        check(json!({"dataSourceRef": claim}), claim.clone(), claim.clone());
        check(json!({"dataSource": other}), Value::Null, Value::Null);
        check(json!({"dataSourceRef": other}), other.clone(), other.clone());
        check(json!({"dataSourceRef": elsewhere}), Value::Null, Value::Null);
    }

    /// A read does not drop what a create drops.
    #[test]
    fn data_sources_of_stored_claims_follow_from_each_other() {
        let other = json!({"apiGroup": "a.example.com", "kind": "Thing", "name": "c"});
        for (stored, missing) in [("dataSource", "dataSourceRef"), ("dataSourceRef", "dataSource")] {
            let mut object = json!({"spec": {}});
            object.set(&format!("spec.{stored}"), other.clone());
            ClaimStrategy.default_on_read(&mut object);
            assert_eq!(*rules::value_at(&object, &format!("spec.{missing}")), other);
        }
    }
}
