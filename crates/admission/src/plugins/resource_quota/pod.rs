//! Computes the usage of pods.

use crate::plugins::{
    pods::ContainerKind,
    quantities::{
        HUGE_PAGES, Quantities, count, is_pod_level, is_restartable, pod_requests, quantities, raise,
        set_pod_level, sum_of_containers,
    },
};
use jiff::{SignedDuration, Timestamp};
use pintle_feature_gates::{Gate, enabled};
use pintle_machinery::{Value, ValueExt, meta};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

const OBJECTS: &str = "count/pods";
const PODS: &str = "pods";
pub(super) const REQUESTS: &str = "requests.";
const LIMITS: &str = "limits.";
/// The implicit extended resources of device classes begin with this, and end with the class.
pub(super) const DEVICE_CLASS: &str = "deviceclass.resource.kubernetes.io/";
const COMPUTE: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
/// Containers must request these when a quota limits them. The API adds no further resources to this list.
const ASKED_FOR: [&str; 6] =
    ["cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"];

pub(super) fn counts(name: &str) -> bool {
    let requested = name.strip_prefix(REQUESTS);
    let plain = requested.or_else(|| name.strip_prefix(LIMITS)).unwrap_or(name);
    name == OBJECTS
        || name == PODS
        || COMPUTE.contains(&plain)
        || requested.unwrap_or(name).starts_with(HUGE_PAGES)
        || extended_resource(name).is_some()
}

/// The extended resource whose requests a quota resource limits.
pub(super) fn extended_resource(name: &str) -> Option<&str> {
    let resource = name.strip_prefix(REQUESTS)?;
    (!is_native(name) || resource.starts_with(DEVICE_CLASS)).then_some(resource)
}

/// Whether the resource is Kubernetes' own and not an extended one.
fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// The message for requests or limits that containers lack, unless the pod has them at pod level.
pub(super) fn missing(restricted: &[&str], pod: &Value) -> Option<String> {
    let asks_as_a_whole = ["spec.resources.requests", "spec.resources.limits"]
        .into_iter()
        .any(|path| pod.map_at(path).keys().any(|name| is_pod_level(name)));
    if asks_as_a_whole && enabled(Gate::PodLevelResources) {
        return None;
    }
    let mut missing: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for kind in [ContainerKind::Regular, ContainerKind::Init] {
        for container in pod.items_at(kind.path()) {
            let usage = compute(
                &quantities(container.map_at("resources.requests")),
                &quantities(container.map_at("resources.limits")),
            );
            for name in restricted {
                if ASKED_FOR.contains(name) && !usage.contains_key(*name) {
                    missing.entry(name).or_default().insert(container.str_at("name"));
                }
            }
        }
    }
    if missing.is_empty() {
        return None;
    }
    let parts: Vec<String> = missing
        .into_iter()
        .map(|(name, containers)| {
            let containers: Vec<&str> = containers.into_iter().collect();
            format!("{name} for: {}", containers.join(","))
        })
        .collect();
    Some(format!("must specify {}", parts.join("; ")))
}

/// The usage of a pod. A pod that has ended counts as an object but uses no compute resources.
pub(super) fn usage(pod: &Value, now: Timestamp) -> Quantities {
    let mut usage = Quantities::from([(OBJECTS.to_owned(), count(1))]);
    if !has_ended(pod, now) {
        usage.insert(PODS.to_owned(), count(1));
        usage.extend(compute(&requests(pod), &limits(pod)));
    }
    usage
}

/// Whether the pod has ended, or is overdue on a lost node, where it must not block its replacement.
fn has_ended(pod: &Value, now: Timestamp) -> bool {
    if matches!(pod.str_at("status.phase"), "Failed" | "Succeeded") {
        return true;
    }
    let deleted = meta::parse_time(pod.str_at("metadata.deletionTimestamp"));
    let grace = pod.i64_at("metadata.deletionGracePeriodSeconds");
    deleted
        .zip(grace)
        .is_some_and(|(deleted, grace)| now.duration_since(deleted) > SignedDuration::from_secs(grace))
}

/// Converts requests and limits to the names that quotas use.
fn compute(requests: &Quantities, limits: &Quantities) -> Quantities {
    let mut usage = Quantities::new();
    for (name, quantity) in requests {
        let is_own = COMPUTE.contains(&name.as_str()) || name.starts_with(HUGE_PAGES);
        let is_device = !is_native(name) && !name.starts_with(REQUESTS) || name.starts_with(DEVICE_CLASS);
        if is_own {
            usage.insert(name.clone(), quantity.clone());
        }
        if is_own || is_device {
            usage.insert(format!("{REQUESTS}{name}"), quantity.clone());
        }
    }
    for (name, quantity) in limits {
        if COMPUTE.contains(&name.as_str()) {
            usage.insert(format!("{LIMITS}{name}"), quantity.clone());
        }
    }
    usage
}

fn requests(pod: &Value) -> Quantities {
    let statuses = Statuses::of(pod);
    pod_requests(pod, |container| statuses.effective(container, "requests"))
}

fn limits(pod: &Value) -> Quantities {
    let statuses = Statuses::of(pod);
    let mut total = sum_of_containers(pod, |container| statuses.effective(container, "limits"));
    set_pod_level(&mut total, pod, "spec.resources.limits");
    for (name, quantity) in quantities(pod.map_at("spec.overhead")) {
        if let Some(limit) = total.get_mut(&name).filter(|limit| !limit.is_zero()) {
            limit.add(&quantity);
        }
    }
    total
}

/// The statuses of a pod's containers by name. A pod may have very many of them.
struct Statuses<'a> {
    init_containers: HashSet<&'a str>,
    of_init_containers: HashMap<&'a str, &'a Value>,
    of_containers: HashMap<&'a str, &'a Value>,
    /// Whether the node cannot satisfy the pod's resize.
    is_infeasible: bool,
}

impl<'a> Statuses<'a> {
    fn of(pod: &'a Value) -> Statuses<'a> {
        let by_name = |path| {
            // Of several with a name the first counts.
            let statuses = pod.items_at(path).iter().rev();
            statuses.map(|status| (status.str_at("name"), status)).collect()
        };
        let mut conditions = pod.items_at("status.conditions").iter();
        let pending = conditions.find(|condition| condition.str_at("type") == "PodResizePending");
        Statuses {
            init_containers: pod
                .items_at("spec.initContainers")
                .iter()
                .map(|init| init.str_at("name"))
                .collect(),
            of_init_containers: by_name("status.initContainerStatuses"),
            of_containers: by_name("status.containerStatuses"),
            is_infeasible: pending.is_some_and(|condition| condition.str_at("reason") == "Infeasible"),
        }
    }

    /// The amounts of a container during a resize: the larger of actual and desired ones, or the actual ones when the
    /// node cannot satisfy the resize.
    fn effective(&self, container: &Value, list: &str) -> Quantities {
        let wanted = quantities(container.map_at(&format!("resources.{list}")));
        let Some(status) = self.get(container).filter(|status| status.at("resources").is_some()) else {
            return wanted;
        };
        let mut effective = if self.is_infeasible { Quantities::new() } else { wanted };
        raise(&mut effective, &quantities(status.map_at(&format!("resources.{list}"))));
        if list == "requests" {
            raise(&mut effective, &quantities(status.map_at("allocatedResources")));
        }
        effective
    }

    /// The status of a regular or restartable init container.
    fn get(&self, container: &Value) -> Option<&'a Value> {
        let name = container.str_at("name");
        let statuses = match self.init_containers.contains(name) {
            true if !is_restartable(container) => return None,
            true => &self.of_init_containers,
            false => &self.of_containers,
        };
        statuses.get(name).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::{Map, json};
    use std::time::{Duration, Instant};

    #[test]
    fn very_many_containers_are_counted_one_by_one() {
        const MANY: usize = 10_000;
        let container = |number: usize, requests: Value| json!({"name": format!("c{number}"), "resources": {"requests": requests}});
        let devices: Map = (0..MANY).map(|number| (format!("e.io/d{number}"), json!("1"))).collect();
        let mut sidecar = container(0, Value::Object(devices));
        sidecar.set("restartPolicy", "Always");
        let inits = (1..MANY).map(|number| container(number, json!({"cpu": "1m"})));
        let regular = (MANY..2 * MANY).map(|number| container(number, json!({"cpu": "1m"})));
        let pod = json!({"spec": {
            "initContainers": std::iter::once(sidecar).chain(inits).collect::<Vec<_>>(),
            "containers": regular.collect::<Vec<_>>(),
        }});
        let started = Instant::now();
        let usage = usage(&pod, Timestamp::UNIX_EPOCH);
        assert_eq!(usage["requests.cpu"].to_string(), "10");
        assert_eq!(usage["requests.e.io/d7"].to_string(), "1");
        assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    }
}
