//! Validates a resize of a pod, which may change only quantities of cpu and memory.

use super::qos;
use super::update::refuse_mirror_pod;
use super::validation::validate_metadata_and_spec;
use crate::core::pod_spec::PodValidationOptions;
use crate::core::pod_spec::containers_of::is_restartable_init;
use crate::core::pod_spec::resources::has_removed;
use pintle_feature_gates::{Gate, enabled};
use pintle_machinery::validation::{semantically_equal, validate_object_meta_update};
use pintle_machinery::{ErrorList, FieldError, FieldPath, Value, ValueExt};

const ONLY_CPU_AND_MEMORY: &str = "only cpu and memory resources are mutable";
const LISTS: [&str; 2] = ["containers", "initContainers"];

/// Validates a resize of a pod.
pub(super) fn validate_resize(new: &Value, old: &Value) -> ErrorList {
    let options = PodValidationOptions::for_pod(Some(old));
    let mut errors = validate_object_meta_update(new, old, &FieldPath::new("metadata"));
    errors.extend(validate_metadata_and_spec(new, &options));
    if let Some(error) = refuse_mirror_pod(old, "static pods cannot be resized") {
        return vec![error];
    }
    if old.str_at("spec.os.name") == "windows" {
        return vec![FieldError::forbidden(&FieldPath::new("[]"), "windows pods cannot be resized")];
    }
    let path = FieldPath::new("spec");
    if qos::qos_class(old) != qos::compute(new) {
        let detail = "Pod QOS Class may not change as a result of resizing";
        errors.push(FieldError::invalid(&path, new.str_at("status.qosClass"), detail).of_named_type());
    }
    if !node_can_resize(old) {
        let detail = "Pod running on node without support for resize";
        errors.push(FieldError::forbidden(&path, detail));
    }
    let claims = old.items_at("status.nodeAllocatableResourceClaimStatuses");
    let (new, old) = (new.at("spec").unwrap_or(&Value::Null), old.at("spec").unwrap_or(&Value::Null));
    let mut masked = new.clone();
    if !enabled(Gate::InPlacePodLevelResourcesVerticalScaling) && [new, old].into_iter().any(has_pod_level) {
        let detail = "resize of pods with pod-level resources is forbidden when \
                      InPlacePodLevelResourcesVerticalScalingEnabled feature gate is disabled";
        errors.push(FieldError::forbidden(&FieldPath::new("[]"), detail));
        return errors;
    }
    errors.extend(validate_pod_level(&mut masked, new, old, &path));
    if !claims.is_empty() {
        let detail = "pods with node allocatable resource claims cannot be resized";
        errors.push(FieldError::forbidden(&path, detail));
    }
    let order_errors = validate_order(new, old, &path);
    if !order_errors.is_empty() {
        errors.extend(order_errors);
        return errors;
    }
    for list in ["initContainers", "containers"] {
        for (index, (new, old)) in new.items_at(list).iter().zip(old.items_at(list)).enumerate() {
            if list == "initContainers" && !can_resize_init(old) {
                continue;
            }
            let path = path.child(list).index(index).child("resources");
            errors.extend(validate_nothing_removed(new, old, "resource", &path));
        }
    }
    for (container, old) in masked.items_at_mut("containers").iter_mut().zip(old.items_at("containers")) {
        mask_container(container, old);
        if !semantically_equal(container, old) {
            errors.push(FieldError::forbidden(&path, ONLY_CPU_AND_MEMORY));
        }
    }
    let init = masked.items_at_mut("initContainers").iter_mut().zip(old.items_at("initContainers"));
    for (index, (container, old)) in init.enumerate() {
        let was_modified = !semantically_equal(container, old);
        if !can_resize_init(container) {
            if was_modified {
                let detail = "resources for non-sidecar init containers are immutable";
                errors.push(FieldError::forbidden(&path, detail));
            }
            continue;
        }
        let path = path.child("initContainers").index(index);
        mask_container(container, old);
        if !semantically_equal(container, old) {
            let detail = "only cpu and memory resources for init or sidecar containers are mutable";
            errors.push(FieldError::forbidden(&path, detail));
        }
        if was_modified && !is_restartable_init(container) {
            let restarts = |policy: &&Value| policy.str_at("restartPolicy") == "RestartContainer";
            for _ in container.items_at("resizePolicy").iter().filter(restarts) {
                let detail =
                    "non-sidecar init containers with a resize policy of RestartContainer cannot be resized";
                errors.push(FieldError::forbidden(&path, detail));
            }
        }
    }
    if errors.is_empty() && !semantically_equal(&masked, old) {
        errors.push(FieldError::forbidden(&path, ONLY_CPU_AND_MEMORY));
    }
    errors
}

/// Whether an init container can be resized.
fn can_resize_init(container: &Value) -> bool {
    is_restartable_init(container) || enabled(Gate::InPlacePodVerticalScalingInitContainers)
}

/// Whether the pod's node supports resizing: it reports the resources of running containers. True if none is running.
fn node_can_resize(pod: &Value) -> bool {
    let statuses = pod.items_at("status.containerStatuses");
    let running = statuses.iter().find(|status| status.at("state.running").is_some());
    running.is_none_or(|status| status.at("resources").is_some())
}

fn validate_order(new: &Value, old: &Value, path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    for list in LISTS {
        let path = path.child(list);
        let (new, old) = (new.items_at(list), old.items_at(list));
        if new.len() != old.len() {
            let detail = format!("{list} may not be added or removed on resize");
            errors.push(FieldError::forbidden(&path, detail));
            continue;
        }
        for (index, (new, old)) in new.iter().zip(old).enumerate() {
            if new.str_at("name") != old.str_at("name") {
                let detail = format!("{list} may not be renamed or reordered on resize");
                errors.push(FieldError::forbidden(&path.index(index).child("name"), detail));
            }
        }
    }
    errors
}

fn validate_nothing_removed(new: &Value, old: &Value, what: &str, path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    for field in ["requests", "limits"] {
        let list = format!("resources.{field}");
        if has_removed(new.map_at(&list), old.map_at(&list)) {
            let detail = format!("{what} {field} cannot be removed");
            errors.push(FieldError::forbidden(&path.child(field), detail));
        }
    }
    errors
}

/// Whether a spec has pod-level resources.
fn has_pod_level(spec: &Value) -> bool {
    !spec.map_at("resources.requests").is_empty() || !spec.map_at("resources.limits").is_empty()
}

/// Validates changes of pod-level resources, and masks those of cpu and memory.
fn validate_pod_level(masked: &mut Value, new: &Value, old: &Value, path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    if !has_pod_level(new) && !has_pod_level(old) {
        return errors;
    }
    if old.at("resources").is_some() {
        let path = path.child("resources");
        if new.at("resources").is_none() {
            return vec![FieldError::forbidden(&path, "pod-level resources cannot be removed")];
        }
        errors.extend(validate_nothing_removed(new, old, "pod-level resource", &path));
    }
    mask_resources(masked, old);
    drop_masked(masked, old);
    let of = |spec: &Value| spec.at("resources").cloned().unwrap_or_default();
    if !semantically_equal(&of(masked), &of(old)) {
        let detail = "only cpu and memory resources are mutable at pod-level";
        errors.push(FieldError::forbidden(path, detail));
    }
    errors
}

/// Masks the changes of a container's cpu and memory. Its claims are left out, as in kube-apiserver, so that a container
/// with claims cannot be resized.
fn mask_container(container: &mut Value, old: &Value) {
    mask_resources(container, old);
    container.remove_at("resources.claims");
    drop_masked(container, old);
}

/// Drops resources of which the masks have left nothing.
fn drop_masked(object: &mut Value, old: &Value) {
    if old.at("resources").is_none() && object.map_at("resources").values().all(Value::is_null) {
        object.remove_at("resources");
    }
}

/// Restores the quantities of cpu and memory, to mask their changes.
fn mask_resources(object: &mut Value, old: &Value) {
    for field in ["resources.limits", "resources.requests"] {
        let mut list = object.map_at(field).clone();
        for name in ["cpu", "memory"] {
            match old.map_at(field).get(name) {
                Some(value) => drop(list.insert(name, value.clone())),
                None => drop(list.remove(name)),
            }
        }
        match list.is_empty() {
            true => drop(object.remove_at(field)),
            false => object.set(field, list),
        }
    }
}
