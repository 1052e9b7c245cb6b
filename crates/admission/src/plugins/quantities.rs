//! Amounts by resource name, and what the containers of a pod come to together.

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
