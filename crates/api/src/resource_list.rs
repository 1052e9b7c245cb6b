//! Lists of quantities by resource name, such as `requests` and `limits`.

use crate::core::pod_spec::containers_of::is_restartable_init;
use pintle_feature_gates::{Gate, enabled};
use pintle_machinery::{Map, Quantity, Value, ValueExt};
use std::collections::BTreeMap;

/// Quantities by resource name.
pub(crate) type Quantities = BTreeMap<String, Quantity>;

const HUGE_PAGES_PREFIX: &str = "hugepages-";
const MILLI: i32 = -3;

/// The quantity of a list member; decoding has rejected invalid ones.
pub(crate) fn quantity(value: &Value) -> Quantity {
    Quantity::from_tree(value).unwrap_or_default()
}

/// Whether the resource is huge pages of some size.
pub(crate) fn is_huge_page(name: &str) -> bool {
    name.starts_with(HUGE_PAGES_PREFIX)
}

/// The size of the pages of a huge page resource.
pub(crate) fn huge_page_size(name: &str) -> Option<Quantity> {
    Quantity::parse(name.strip_prefix(HUGE_PAGES_PREFIX)?).ok()
}

/// Whether the resource is Kubernetes' own and not an extended one.
pub(crate) fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// Whether the resource may be overcommitted.
pub(crate) fn is_overcommit_allowed(name: &str) -> bool {
    is_native(name) && !is_huge_page(name)
}

/// Whether pods may have pod-level amounts of the resource.
pub(crate) fn is_pod_level(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || is_huge_page(name)
}

/// Rounds the quantities of the lists at the paths up to thousandths, the precision of the API.
pub(crate) fn round_up_at(object: &mut Value, paths: &[&str]) {
    for path in paths {
        let Some(list) = object.at_mut(path).and_then(Value::as_object_mut) else { continue };
        for value in list.values_mut() {
            if let Ok(mut quantity) = Quantity::from_tree(value)
                && !quantity.round_up(MILLI)
            {
                *value = Value::from(&quantity);
            }
        }
    }
}

/// Adds the positive quantities of the resources for which `counts` is true.
pub(crate) fn add(sum: &mut Quantities, list: &Map, counts: impl Fn(&str) -> bool) {
    for (name, value) in list {
        let quantity = quantity(value);
        if counts(name) && quantity.sign() > 0 {
            add_one(sum, name, &quantity);
        }
    }
}

fn add_one(sum: &mut Quantities, name: &str, quantity: &Quantity) {
    match sum.get_mut(name) {
        Some(total) => total.add(quantity),
        None => drop(sum.insert(name.to_owned(), quantity.clone())),
    }
}

/// The total `requests` or `limits` (`field`) of a spec's containers: the sum over the containers that run
/// concurrently, or the peak during initialization if that is more
/// (<https://kubernetes.io/docs/concepts/workloads/pods/init-containers/#resource-sharing-within-containers>).
pub(crate) fn aggregate(spec: &Value, field: &str) -> Quantities {
    let list_of = |container: &Value| -> Quantities {
        let list = container.map_at(&format!("resources.{field}")).iter();
        list.map(|(name, value)| (name.to_string(), quantity(value))).collect()
    };
    let add_all = |sum: &mut Quantities, list: &Quantities| {
        list.iter().for_each(|(name, quantity)| add_one(sum, name, quantity));
    };
    let mut total = Quantities::new();
    for container in spec.items_at("containers") {
        add_all(&mut total, &list_of(container));
    }
    let (mut sidecars, mut peak) = (Quantities::new(), Quantities::new());
    for container in spec.items_at("initContainers") {
        let own = list_of(container);
        let mut moment = own.clone();
        if is_restartable_init(container) {
            add_all(&mut total, &own);
            add_all(&mut sidecars, &own);
            moment = sidecars.clone();
        } else {
            add_all(&mut moment, &sidecars);
        }
        raise(&mut peak, moment);
    }
    raise(&mut total, peak);
    total
}

fn raise(sum: &mut Quantities, list: Quantities) {
    for (name, quantity) in list {
        if sum.get(&name).is_none_or(|known| quantity > *known) {
            sum.insert(name, quantity);
        }
    }
}

/// Defaults the pod-level resources of a pod that has some
/// (<https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/#pod-level-resource-specification>):
/// limits of huge pages from those of its containers, requests from its containers' or else from its limits.
pub(crate) fn set_pod_level_defaults(spec: &mut Value) {
    let Some(resources) = spec.at("resources").filter(|_| enabled(Gate::PodLevelResources)) else { return };
    let (mut limits, mut requests) =
        (resources.map_at("limits").clone(), resources.map_at("requests").clone());
    if limits.is_empty() && requests.is_empty() {
        return;
    }
    for (name, limit) in aggregate(spec, "limits") {
        if is_huge_page(&name) && !requests.contains_key(&name) {
            limits.entry(name).or_insert_with(|| Value::from(&limit));
        }
    }
    if !limits.is_empty() {
        for (name, request) in aggregate(spec, "requests") {
            if is_pod_level(&name) && is_overcommit_allowed(&name) {
                requests.entry(name).or_insert_with(|| Value::from(&request));
            }
        }
        for (name, limit) in &limits {
            if is_pod_level(name) {
                requests.entry(name.as_str()).or_insert_with(|| limit.clone());
            }
        }
    }
    for (field, list) in [("resources.limits", limits), ("resources.requests", requests)] {
        if !list.is_empty() {
            spec.set(field, list);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    #[test]
    fn containers_ask_for_their_sum_or_their_peak() {
        let ask = |cpu: &str| json!({"requests": {"cpu": cpu}});
        let rows = [
            (json!({"containers": [{"resources": ask("1")}, {"resources": ask("500m")}]}), "1500m"),
            (
                json!({"containers": [{"resources": ask("1")}], "initContainers": [{"resources": ask("2")}]}),
                "2",
            ),
            (
                json!({"containers": [{"resources": ask("1")}], "initContainers": [
                    {"resources": ask("1"), "restartPolicy": "Always"}, {"resources": ask("2")},
                ]}),
                "3",
            ),
            (
                json!({"containers": [{"resources": ask("1")}], "initContainers": [
                    {"resources": ask("1")}, {"resources": ask("1"), "restartPolicy": "Always"},
                ]}),
                "2",
            ),
        ];
        for (spec, cpu) in rows {
            assert_eq!(aggregate(&spec, "requests").get("cpu"), Quantity::parse(cpu).ok().as_ref(), "{spec}");
        }
    }

    #[test]
    fn pod_level_requests_follow_from_containers_then_from_limits() {
        let mut spec = json!({
            "resources": {"limits": {"cpu": "2", "memory": "1Gi"}},
            "containers": [{"resources": {"requests": {"cpu": "500m"}, "limits": {"hugepages-2Mi": "4Mi"}}}],
        });
        set_pod_level_defaults(&mut spec);
        assert_eq!(
            spec.at("resources").unwrap(),
            &json!({
                "limits": {"cpu": "2", "hugepages-2Mi": "4Mi", "memory": "1Gi"},
                "requests": {"cpu": "500m", "hugepages-2Mi": "4Mi", "memory": "1Gi"},
            })
        );
    }
}
