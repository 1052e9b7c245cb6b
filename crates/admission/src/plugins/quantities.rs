//! Resource amounts by name, and the total amounts of a pod.

use pintle_feature_gates::{Gate, enabled};
use pintle_machinery::{Map, Quantity, Value, ValueExt, quantity::Format};
use std::collections::BTreeMap;

/// Amounts by resource name.
pub(super) type Quantities = BTreeMap<String, Quantity>;

/// Converts a resource list.
pub(super) fn quantities(list: &Map) -> Quantities {
    list.iter()
        .filter_map(|(name, value)| Some((name.to_string(), Quantity::from_tree(value).ok()?)))
        .collect()
}

/// Converts a number of objects to a quantity.
pub(super) fn count(number: usize) -> Quantity {
    Quantity::new(i64::try_from(number).unwrap_or(i64::MAX), Format::DecimalSi)
}

/// Adds the amounts of a list to a total.
pub(super) fn add(total: &mut Quantities, list: &Quantities) {
    for (name, quantity) in list {
        match total.get_mut(name) {
            Some(sum) => sum.add(quantity),
            None => drop(total.insert(name.to_owned(), quantity.clone())),
        }
    }
}

/// Raises each amount of a total to that of a list.
pub(super) fn raise(total: &mut Quantities, list: &Quantities) {
    for (name, quantity) in list {
        if total.get(name).is_none_or(|sum| quantity > sum) {
            total.insert(name.to_owned(), quantity.clone());
        }
    }
}

/// Whether the init container is restartable (a sidecar), so that it keeps running beside later containers.
pub(super) fn is_restartable(container: &Value) -> bool {
    container.str_at("restartPolicy") == "Always"
}

/// The sum over the containers, or the peak of the init containers, whichever is larger
/// (<https://kubernetes.io/docs/concepts/workloads/pods/init-containers/#resource-sharing-within-containers>).
pub(super) fn sum_of_containers(pod: &Value, of_container: impl Fn(&Value) -> Quantities) -> Quantities {
    let mut total = Quantities::new();
    for container in pod.items_at("spec.containers") {
        add(&mut total, &of_container(container));
    }
    let (mut restartable, mut peak) = (Quantities::new(), Quantities::new());
    for container in pod.items_at("spec.initContainers") {
        let mut own = of_container(container);
        // A pod may have very many containers and resources: each container only raises its own resources.
        if is_restartable(container) {
            add(&mut total, &own);
            add(&mut restartable, &own);
            own.retain(|name, quantity| {
                restartable.get(name).inspect(|sum| quantity.clone_from(sum)).is_some()
            });
        } else {
            for (name, quantity) in &mut own {
                if let Some(beside) = restartable.get(name) {
                    quantity.add(beside);
                }
            }
        }
        raise(&mut peak, &own);
    }
    raise(&mut total, &peak);
    total
}

/// The requests of a pod: pod-level requests or else those of its containers, plus the overhead of its runtime.
pub(super) fn pod_requests(pod: &Value, of_container: impl Fn(&Value) -> Quantities) -> Quantities {
    let mut total = sum_of_containers(pod, of_container);
    set_pod_level(&mut total, pod, "spec.resources.requests");
    add(&mut total, &quantities(pod.map_at("spec.overhead")));
    total
}

/// Replaces the amounts of the containers by the pod-level amounts, if pods may have these.
pub(super) fn set_pod_level(total: &mut Quantities, pod: &Value, path: &str) {
    if !enabled(Gate::PodLevelResources) {
        return;
    }
    total.extend(quantities(pod.map_at(path)).into_iter().filter(|(name, _)| is_pod_level(name)));
}

/// Whether pods may have pod-level amounts of the resource.
pub(super) fn is_pod_level(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || name.starts_with(HUGE_PAGES)
}

/// The name prefix of huge page resources.
pub(super) const HUGE_PAGES: &str = "hugepages-";
