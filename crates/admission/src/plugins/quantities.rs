//! Lists of quantities, and what a pod asks for as a whole.

use pintle_machinery::{Map, Quantity, Value, ValueExt};
use std::collections::BTreeMap;

/// Quantities by resource name.
pub(super) type Quantities = BTreeMap<String, Quantity>;

/// The quantities of a list.
pub(super) fn quantities(list: &Map) -> Quantities {
    list.iter().filter_map(|(name, value)| Some((name.clone(), Quantity::from_tree(value).ok()?))).collect()
}

/// Adds a list to a sum.
pub(super) fn add(total: &mut Quantities, list: &Quantities) {
    for (name, quantity) in list {
        match total.get_mut(name) {
            Some(sum) => sum.add(quantity),
            None => drop(total.insert(name.clone(), quantity.clone())),
        }
    }
}

/// Raises each quantity to that of a list.
pub(super) fn raise(total: &mut Quantities, list: &Quantities) {
    for (name, quantity) in list {
        if total.get(name).is_none_or(|sum| quantity > sum) {
            total.insert(name.clone(), quantity.clone());
        }
    }
}

/// What a pod's `requests` or `limits` are: the sum of its containers as `of_container` has them, or what the
/// initialization needs at its peak; what the pod says itself goes first
/// (<https://kubernetes.io/docs/concepts/workloads/pods/init-containers/#resource-sharing-within-containers>).
pub(super) fn of_pod(pod: &Value, list: &str, of_container: impl Fn(&Value) -> Quantities) -> Quantities {
    let mut total = Quantities::new();
    for container in pod.items_at("spec.containers") {
        add(&mut total, &of_container(container));
    }
    // Restartable init containers keep running beside those that come after them.
    let (mut restartable, mut peak) = (Quantities::new(), Quantities::new());
    for container in pod.items_at("spec.initContainers") {
        let mut own = of_container(container);
        if container.str_at("restartPolicy") == "Always" {
            add(&mut total, &own);
            add(&mut restartable, &own);
            own = restartable.clone();
        } else {
            add(&mut own, &restartable);
        }
        raise(&mut peak, &own);
    }
    raise(&mut total, &peak);
    for (name, quantity) in quantities(pod.map_at(&format!("spec.resources.{list}"))) {
        if is_pod_level(&name) {
            total.insert(name, quantity);
        }
    }
    total
}

/// Whether a pod can ask for the resource as a whole.
pub(super) fn is_pod_level(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || name.starts_with("hugepages-")
}
