//! What pods use.

use super::count;
use crate::plugins::{
    pods::ContainerKind,
    quantities::{
        HUGE_PAGES, Quantities, is_pod_level, is_restartable, pod_requests, quantities, raise, set_pod_level,
        sum_of_containers,
    },
};
use jiff::{SignedDuration, Timestamp};
use pintle_machinery::{Value, ValueExt, meta};
use std::collections::{BTreeMap, BTreeSet};

const OBJECTS: &str = "count/pods";
const PODS: &str = "pods";
const REQUESTS: &str = "requests.";
const LIMITS: &str = "limits.";
const DEVICE_CLASS: &str = "deviceclass.resource.kubernetes.io/";
const COMPUTE: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
/// Where one of these is limited, containers have to ask for it; no other resource shall ever be added.
const ASKED_FOR: [&str; 6] =
    ["cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"];

pub(super) fn counts(name: &str) -> bool {
    let requested = name.strip_prefix(REQUESTS);
    let plain = requested.or_else(|| name.strip_prefix(LIMITS)).unwrap_or(name);
    let is_extended = requested.is_some() && !is_native(name);
    let is_of_device_class = requested.is_some_and(|resource| resource.starts_with(DEVICE_CLASS));
    name == OBJECTS
        || name == PODS
        || COMPUTE.contains(&plain)
        || requested.unwrap_or(name).starts_with(HUGE_PAGES)
        || is_extended
        || is_of_device_class
}

/// Whether the resource is one of Kubernetes' own and not a device's.
fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// What containers would have to ask for, unless the pod does it for them.
pub(super) fn missing(restricted: &[&String], pod: &Value) -> Option<String> {
    let asks_as_a_whole = ["spec.resources.requests", "spec.resources.limits"]
        .into_iter()
        .any(|path| pod.map_at(path).keys().any(|name| is_pod_level(name)));
    if asks_as_a_whole {
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
                if ASKED_FOR.contains(&name.as_str()) && !usage.contains_key(*name) {
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

/// A pod that has ended is an object still, but computes nothing.
pub(super) fn usage(pod: &Value, now: Timestamp) -> Quantities {
    let mut usage = Quantities::from([(OBJECTS.to_owned(), count(1))]);
    if !has_ended(pod, now) {
        usage.insert(PODS.to_owned(), count(1));
        usage.extend(compute(&requests(pod), &limits(pod)));
    }
    usage
}

/// Whether the pod is over, or should be: one whose node is lost must not keep others from taking its place.
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

/// The names under which quotas count requests and limits.
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
    pod_requests(pod, |container| effective(pod, container, "requests"))
}

fn limits(pod: &Value) -> Quantities {
    let mut total = sum_of_containers(pod, |container| effective(pod, container, "limits"));
    set_pod_level(&mut total, pod, "spec.resources.limits");
    for (name, quantity) in quantities(pod.map_at("spec.overhead")) {
        if let Some(limit) = total.get_mut(&name).filter(|limit| !limit.is_zero()) {
            limit.add(&quantity);
        }
    }
    total
}

/// A container that is being resized is counted with the larger of what it has and what it wants, or with what it has
/// when the node can never give it more.
fn effective(pod: &Value, container: &Value, list: &str) -> Quantities {
    let wanted = quantities(container.map_at(&format!("resources.{list}")));
    let Some(status) = status_of(pod, container).filter(|status| status.at("resources").is_some()) else {
        return wanted;
    };
    let is_infeasible = pod
        .items_at("status.conditions")
        .iter()
        .find(|condition| condition.str_at("type") == "PodResizePending")
        .is_some_and(|condition| condition.str_at("reason") == "Infeasible");
    let mut effective = if is_infeasible { Quantities::new() } else { wanted };
    raise(&mut effective, &quantities(status.map_at(&format!("resources.{list}"))));
    if list == "requests" {
        raise(&mut effective, &quantities(status.map_at("allocatedResources")));
    }
    effective
}

/// The status of a container that runs as long as the pod.
fn status_of<'a>(pod: &'a Value, container: &Value) -> Option<&'a Value> {
    let name = container.str_at("name");
    let is_init = pod.items_at("spec.initContainers").iter().any(|init| init.str_at("name") == name);
    if is_init && !is_restartable(container) {
        return None;
    }
    let path = if is_init { "status.initContainerStatuses" } else { "status.containerStatuses" };
    pod.items_at(path).iter().find(|status| status.str_at("name") == name)
}
