//! Amounts by resource name, and the amounts of a whole pod.

use pintle_machinery::{Map, Quantity, Value, ValueExt};
use std::collections::BTreeMap;

/// Amounts by resource name.
pub(super) type Quantities = BTreeMap<String, Quantity>;

/// The amounts of a resource list.
pub(super) fn quantities(list: &Map) -> Quantities {
    list.iter().filter_map(|(name, value)| Some((name.clone(), Quantity::from_tree(value).ok()?))).collect()
}

/// Adds amount by amount.
pub(super) fn add(total: &mut Quantities, list: &Quantities) {
    for (name, quantity) in list {
        match total.get_mut(name) {
            Some(sum) => sum.add(quantity),
            None => drop(total.insert(name.clone(), quantity.clone())),
        }
    }
}

/// Takes the larger of each amount.
pub(super) fn raise(total: &mut Quantities, list: &Quantities) {
    for (name, quantity) in list {
        if total.get(name).is_none_or(|sum| quantity > sum) {
            total.insert(name.clone(), quantity.clone());
        }
    }
}

/// Whether the init container keeps running beside those that come after it.
pub(super) fn is_restartable(container: &Value) -> bool {
    container.str_at("restartPolicy") == "Always"
}

/// The sum of what the containers ask for, or what the initialization needs at its peak
/// (<https://kubernetes.io/docs/concepts/workloads/pods/init-containers/#resource-sharing-within-containers>).
pub(super) fn sum_of_containers(pod: &Value, of_container: impl Fn(&Value) -> Quantities) -> Quantities {
    let mut total = Quantities::new();
    for container in pod.items_at("spec.containers") {
        add(&mut total, &of_container(container));
    }
    let (mut restartable, mut peak) = (Quantities::new(), Quantities::new());
    for container in pod.items_at("spec.initContainers") {
        let mut own = of_container(container);
        if is_restartable(container) {
            add(&mut total, &own);
            add(&mut restartable, &own);
            own = restartable.clone();
        } else {
            add(&mut own, &restartable);
        }
        raise(&mut peak, &own);
    }
    raise(&mut total, &peak);
    total
}

/// The requests of a pod: those of the pod as a whole or else of its containers, and the overhead of its runtime.
pub(super) fn pod_requests(pod: &Value, of_container: impl Fn(&Value) -> Quantities) -> Quantities {
    let mut total = sum_of_containers(pod, of_container);
    set_pod_level(&mut total, pod, "spec.resources.requests");
    add(&mut total, &quantities(pod.map_at("spec.overhead")));
    total
}

/// Replaces what the containers come to by what the pod says as a whole.
pub(super) fn set_pod_level(total: &mut Quantities, pod: &Value, path: &str) {
    total.extend(quantities(pod.map_at(path)).into_iter().filter(|(name, _)| is_pod_level(name)));
}

/// Whether a pod may ask for the resource as a whole.
pub(super) fn is_pod_level(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || name.starts_with(HUGE_PAGES)
}

/// The prefix of the resources that are pages of one size.
pub(super) const HUGE_PAGES: &str = "hugepages-";
