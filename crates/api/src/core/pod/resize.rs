//! `pods/resize`: changes the resources of running containers
//! (<https://kubernetes.io/docs/tasks/configure-pod-container/resize-container-resources/>).

use super::ephemeral_containers::keep_all_but_spec_part;
use super::resize_validation;
use super::strategy::{PodStrategy, drop_disabled_fields, update_generation};
use crate::core::pod_spec;
use pintle_feature_gates::{Gate, enabled};
use pintle_machinery::{ErrorList, Value, ValueExt};
use pintle_registry::{RequestContext, Strategy};

/// The strategy of the `resize` subresource.
#[derive(Debug, Clone, Copy)]
pub(super) struct ResizeStrategy;

impl Strategy for ResizeStrategy {
    fn set_defaults(&self, object: &mut Value) {
        PodStrategy.set_defaults(object);
    }

    fn prepare_for_update(&self, context: &RequestContext<'_>, object: &mut Value, old: &Value) {
        keep_all_but_resources(object, old);
        drop_disabled_fields(object, Some(old));
        pod_spec::keep_empty_claims(object, "spec", context.empty_fields);
        update_generation(object, old);
    }

    fn validate_update(&self, _context: &RequestContext<'_>, object: &Value, old: &Value) -> ErrorList {
        resize_validation::validate_resize(object, old)
    }
}

/// Restores all fields but the resources and resize policies of containers, and the resources of the pod. If the number
/// of containers differs, the object stays as it is, and validation rejects it.
fn keep_all_but_resources(object: &mut Value, old: &Value) {
    let lists = ["containers", "initContainers"].map(|list| format!("spec.{list}"));
    if lists.iter().any(|list| object.items_at(list).len() != old.items_at(list).len()) {
        return;
    }
    let merged: Vec<Option<Value>> = lists.iter().map(|list| merge_containers(object, old, list)).collect();
    let resources = match enabled(Gate::InPlacePodLevelResourcesVerticalScaling) {
        true => object.remove_at("spec.resources"),
        false => old.at("spec.resources").cloned(),
    };
    keep_all_but_spec_part(object, old);
    match resources {
        Some(resources) => object.set("spec.resources", resources),
        None => drop(object.remove_at("spec.resources")),
    }
    for (list, containers) in lists.iter().zip(merged) {
        if let Some(containers) = containers {
            object.set(list, containers);
        }
    }
}

/// The old containers with the new resources and resize policies; the new containers if their names differ.
fn merge_containers(object: &Value, old: &Value, list: &str) -> Option<Value> {
    let new = object.at(list)?;
    let mut merged = Vec::new();
    for (new, old) in new.as_array()?.iter().zip(old.items_at(list)) {
        if new.str_at("name") != old.str_at("name") {
            return object.at(list).cloned();
        }
        let mut container = old.clone();
        for field in ["resources", "resizePolicy"] {
            match new.at(field) {
                Some(value) => container.set(field, value.clone()),
                None => drop(container.remove_at(field)),
            }
        }
        merged.push(container);
    }
    Some(Value::Array(merged))
}

#[cfg(test)]
mod tests {
    use super::keep_all_but_resources;
    use pintle_machinery::json;

    #[test]
    fn only_resources_may_change() {
        let old = json!({
            "metadata": {"labels": {"a": "b"}},
            "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i", "resources": {}}]},
            "status": {"phase": "Running"},
        });
        let mut new = json!({
            "metadata": {"labels": {"x": "y"}},
            "spec": {"nodeName": "m", "containers": [{"name": "c", "image": "j", "resources": {"limits": {"cpu": "1"}}}]},
        });
        keep_all_but_resources(&mut new, &old);
        let wanted = json!({
            "metadata": {"labels": {"a": "b"}},
            "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i", "resources": {"limits": {"cpu": "1"}}}]},
            "status": {"phase": "Running"},
        });
        assert_eq!(new, wanted);
    }
}
