//! Validates updates of pods: few fields may change, because the kubelet runs the spec that was bound
//! (<https://kubernetes.io/docs/concepts/workloads/pods/#pod-update-and-replacement>).

use super::validation::validate_metadata_and_spec;
use crate::core::pod_spec::{PodValidationOptions, annotations, tolerations};
use crate::rules;
use pintle_go_forms::quote;
use pintle_machinery::validation::{inclusive_range_error, semantically_equal, validate_object_meta_update};
use pintle_machinery::{ErrorList, FieldError, FieldPath, Value, ValueExt};
use pintle_registry::EmptyFields;
use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::HashSet;

const UPDATABLE_FIELDS: &str = "`spec.containers[*].image`,`spec.initContainers[*].image`,\
`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),\
`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/// Validates an update of a pod.
pub(super) fn validate_update(new: &Value, old: &Value) -> ErrorList {
    let options = PodValidationOptions::for_pod(Some(old));
    let mut errors = validate_common(new, old, &options);
    let path = FieldPath::new("spec");
    let (new, old) = (new.at("spec").unwrap_or(&Value::Null), old.at("spec").unwrap_or(&Value::Null));
    for list in ["containers", "initContainers"] {
        let container_errors = validate_containers(new.items_at(list), old.items_at(list), &path.child(list));
        errors.extend(container_errors);
        if new.items_at(list).len() != old.items_at(list).len() {
            return errors;
        }
    }
    let deadline_path = path.child("activeDeadlineSeconds");
    match (new.i64_at("activeDeadlineSeconds"), old.i64_at("activeDeadlineSeconds")) {
        (Some(new), _) if !(0..=i64::from(i32::MAX)).contains(&new) => {
            let detail = inclusive_range_error(0, i32::MAX.into());
            errors.push(FieldError::invalid(&deadline_path, new, detail));
            return errors;
        }
        (Some(new), Some(old)) if old < new => {
            let detail = "must be less than or equal to previous value";
            errors.push(FieldError::invalid(&deadline_path, new, detail));
            return errors;
        }
        (None, Some(_)) => {
            let detail = "must not update from a positive integer to nil value";
            errors.push(FieldError::invalid(&deadline_path, Value::Null, detail));
        }
        _ => {}
    }
    errors.extend(tolerations::validate_only_added(
        new.items_at("tolerations"),
        old.items_at("tolerations"),
        &options,
        &path.child("tolerations"),
    ));
    errors.extend(validate_only_deleted_gates(new, old, &path.child("schedulingGates")));
    if semantically_equal(new, old) {
        return errors;
    }
    let mut unchanged = new.clone();
    mask_updatable_fields(&mut unchanged, old);
    if !old.items_at("schedulingGates").is_empty() {
        errors.extend(validate_and_mask_placement(&mut unchanged, old, &path));
    }
    if !semantically_equal(&unchanged, old) {
        let detail = format!(
            "pod updates may not change fields other than {UPDATABLE_FIELDS}\n{}",
            pintle_internal_form::difference(old, &unchanged, "core.PodSpec")
        );
        errors.push(FieldError::forbidden(&path, detail));
    }
    errors
}

/// The checks that updates of the pod and of its subresources share.
fn validate_common(new: &Value, old: &Value, options: &PodValidationOptions) -> ErrorList {
    let path = FieldPath::new("metadata");
    let mut errors = validate_object_meta_update(new, old, &path);
    errors.extend(validate_metadata_and_spec(new, options));
    errors.extend(annotations::validate_annotation_updates(
        new.map_at("metadata.annotations"),
        old.map_at("metadata.annotations"),
        new.at("spec").unwrap_or(&Value::Null),
        &path.child("annotations"),
        options,
    ));
    errors
}

fn validate_containers(new: &[Value], old: &[Value], path: &FieldPath) -> ErrorList {
    if new.len() != old.len() {
        return vec![FieldError::forbidden(path, "pod updates may not add or remove containers")];
    }
    let mut errors = ErrorList::new();
    for (index, container) in new.iter().enumerate() {
        let path = path.index(index).child("image");
        let image = container.str_at("image");
        if image.is_empty() {
            errors.push(FieldError::required(&path, ""));
        }
        if image.trim() != image {
            let detail = "must not have leading or trailing whitespace";
            errors.push(FieldError::invalid(&path, image, detail));
        }
    }
    errors
}

fn validate_only_deleted_gates(new: &Value, old: &Value, path: &FieldPath) -> ErrorList {
    let old_gates = old.items_at("schedulingGates");
    let new_gates = new.items_at("schedulingGates").iter().enumerate();
    let known: HashSet<&str> = old_gates.iter().map(|old| old.str_at("name")).collect();
    let is_new = |name: &str| !known.contains(name);
    new_gates
        .filter(|(_, gate)| is_new(gate.str_at("name")))
        .map(|(index, gate)| {
            let name = gate.str_at("name");
            let detail = format!("only deletion is allowed, but found new scheduling gate '{name}'");
            FieldError::forbidden(&path.index(index).child("name"), detail)
        })
        .collect()
}

/// Restores the mutable fields, so that every remaining difference is an error.
fn mask_updatable_fields(spec: &mut Value, old: &Value) {
    for list in ["containers", "initContainers"] {
        for (container, old) in spec.items_at_mut(list).iter_mut().zip(old.items_at(list)) {
            rules::keep(container, old, "image");
        }
    }
    for field in ["activeDeadlineSeconds", "schedulingGates", "tolerations"] {
        rules::keep(spec, old, field);
    }
    let was_negative = old.i64_at("terminationGracePeriodSeconds").is_some_and(|seconds| seconds < 0);
    if was_negative && spec.i64_at("terminationGracePeriodSeconds") == Some(1) {
        rules::keep(spec, old, "terminationGracePeriodSeconds");
    }
}

/// Validates and masks node selector and node affinity, which may be narrowed while the pod has scheduling gates.
fn validate_and_mask_placement(spec: &mut Value, old: &Value, path: &FieldPath) -> ErrorList {
    const NODE_AFFINITY: &str = "affinity.nodeAffinity";
    let mut errors = ErrorList::new();
    let (new_selector, old_selector) = (spec.map_at("nodeSelector"), old.map_at("nodeSelector"));
    if old_selector.iter().any(|(key, value)| new_selector.get(key) != Some(value)) {
        let detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
        let selector = Value::Object(new_selector.clone());
        errors.push(FieldError::invalid(&path.child("nodeSelector"), selector, detail));
    }
    rules::keep(spec, old, "nodeSelector");
    let (new_affinity, old_affinity) = (spec.at(NODE_AFFINITY), old.at(NODE_AFFINITY));
    // An affinity that is empty from the start is a change of the pod.
    if semantically_equal(new_affinity.unwrap_or(&Value::Null), old_affinity.unwrap_or(&Value::Null)) {
        return errors;
    }
    let affinity_path = path.child("affinity").child("nodeAffinity");
    errors.extend(validate_node_affinity(new_affinity, old_affinity, &affinity_path));
    rules::keep(spec, old, NODE_AFFINITY);
    if spec.map_at("affinity").values().all(Value::is_null) && old.at("affinity").is_none() {
        spec.remove_at("affinity");
    }
    errors
}

fn validate_node_affinity(new: Option<&Value>, old: Option<&Value>, path: &FieldPath) -> ErrorList {
    const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
    let terms = |affinity: Option<&Value>| -> Vec<Value> {
        let required = affinity.and_then(|affinity| affinity.at(REQUIRED));
        required.map(|required| required.items_at("nodeSelectorTerms").to_vec()).unwrap_or_default()
    };
    let (new, old) = (terms(new), terms(old));
    let path = path.child(REQUIRED).child("nodeSelectorTerms");
    if old.is_empty() {
        return ErrorList::new();
    }
    if new.len() != old.len() {
        let detail = "no additions/deletions to non-empty NodeSelectorTerms list are allowed";
        let shown = if new.is_empty() { Value::Null } else { new.into() };
        let error = FieldError::invalid(&path, shown, detail);
        return vec![pintle_internal_form::show(error, "[]core.NodeSelectorTerm")];
    }
    let mut errors = ErrorList::new();
    for (index, (new, old)) in new.into_iter().zip(&old).enumerate() {
        if !has_only_additions(&new, old) {
            let detail = "only additions are allowed (no mutations or deletions)";
            let error = FieldError::invalid(&path.index(index), new, detail);
            errors.push(pintle_internal_form::show(error, "core.NodeSelectorTerm"));
        }
    }
    errors
}

/// Whether a term only gains requirements. Terms are alternatives, and an empty one matches nothing, so an empty term
/// must stay empty.
fn has_only_additions(new: &Value, old: &Value) -> bool {
    const LISTS: [&str; 2] = ["matchExpressions", "matchFields"];
    let is_empty = |term: &Value| LISTS.iter().all(|list| term.items_at(list).is_empty());
    if is_empty(old) {
        return is_empty(new);
    }
    LISTS.iter().all(|list| {
        let (new, old) = (new.items_at(list), old.items_at(list));
        new.len() >= old.len() && new.iter().zip(old).all(|(new, old)| semantically_equal(new, old))
    })
}

/// Validates an update of the ephemeral containers: they may be added, but not changed or removed.
pub(super) fn validate_ephemeral_containers_update(
    new: &Value,
    old: &Value,
    empty_fields: &EmptyFields,
) -> ErrorList {
    const LIST: &str = "spec.ephemeralContainers";
    let options = PodValidationOptions::for_pod(Some(old));
    // Empty lists count as set where a container must not have the field.
    let mut written = Cow::Borrowed(new);
    if !empty_fields.select(|path| path.starts_with("spec.ephemeralContainers[").then(String::new)).is_empty()
    {
        empty_fields.put_into(written.to_mut());
    }
    let mut errors = validate_common(&written, old, &options);
    if let Some(error) = refuse_mirror_pod(old, "static pods do not support ephemeral containers") {
        return vec![error];
    }
    let path = FieldPath::new(LIST);
    // Validation has already rejected duplicate names; the last container of a name is compared.
    let by_name: HashMap<&str, &Value> =
        new.items_at(LIST).iter().map(|container| (container.str_at("name"), container)).collect();
    for container in old.items_at(LIST) {
        let name = container.str_at("name");
        let quoted = quote(name);
        match by_name.get(name).copied() {
            None => {
                let detail = format!("existing ephemeral containers {quoted} may not be removed\n");
                errors.push(FieldError::forbidden(&path, detail));
            }
            Some(changed) if !semantically_equal(container, changed) => {
                let difference =
                    pintle_internal_form::difference(container, changed, "core.EphemeralContainer");
                let detail =
                    format!("existing ephemeral containers {quoted} may not be changed\n{difference}");
                errors.push(FieldError::forbidden(&path, detail));
            }
            Some(_) => {}
        }
    }
    errors
}

/// Rejects changes of mirror pods: a static pod is managed by its kubelet, not through the API.
pub(super) fn refuse_mirror_pod(old: &Value, detail: &str) -> Option<FieldError> {
    let is_mirror = old.map_at("metadata.annotations").contains_key(annotations::MIRROR_POD);
    is_mirror.then(|| FieldError::forbidden(&FieldPath::new("[]"), detail))
}
