//! What pods use.

use super::evaluator::number;
use super::scopes::Scope;
use crate::plugins::quantities::{Quantities, add, is_pod_level, of_pod, quantities, raise};
use jiff::{SignedDuration, Timestamp};
use pintle_machinery::{Value, ValueExt, meta::parse_time};
use std::collections::{BTreeMap, BTreeSet};

const REQUESTS: &str = "requests.";
const LIMITS: &str = "limits.";
const HUGE_PAGES: &str = "hugepages-";
const DEVICE_CLASS: &str = "deviceclass.resource.kubernetes.io/";
/// What is counted under its own name, too.
const NATIVE: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

/// Whether pods use a resource of a quota.
pub(super) fn counts(name: &str) -> bool {
    let own = name.strip_prefix(REQUESTS).or_else(|| name.strip_prefix(LIMITS)).unwrap_or(name);
    if name == "pods" || NATIVE.contains(&own) || name.starts_with(HUGE_PAGES) {
        return true;
    }
    let Some(requested) = name.strip_prefix(REQUESTS) else { return false };
    requested.starts_with(HUGE_PAGES) || requested.starts_with(DEVICE_CLASS) || !is_native(name)
}

fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// Whether the pod ends by itself.
pub(super) fn is_terminating(pod: &Value) -> bool {
    pod.i64_at("spec.activeDeadlineSeconds").is_some_and(|seconds| seconds >= 0)
}

pub(super) fn is_in_scope(scope: &Scope<'_>, pod: &Value) -> bool {
    match scope.name {
        "Terminating" => is_terminating(pod),
        "NotTerminating" => !is_terminating(pod),
        "BestEffort" => is_best_effort(pod),
        "NotBestEffort" => !is_best_effort(pod),
        "PriorityClass" => match pod.str_at("spec.priorityClassName") {
            "" => scope.selects(&[]),
            class => scope.selects(&[class]),
        },
        "CrossNamespacePodAffinity" => reaches_other_namespaces(pod),
        _ => false,
    }
}

/// Whether the pod asks for nothing.
fn is_best_effort(pod: &Value) -> bool {
    if !pod.str_at("status.qosClass").is_empty() {
        return pod.str_at("status.qosClass") == "BestEffort";
    }
    let asks = |resources: &Value| {
        ["requests", "limits"].iter().any(|list| {
            quantities(resources.map_at(list))
                .iter()
                .any(|(name, amount)| matches!(name.as_str(), "cpu" | "memory") && amount.sign() > 0)
        })
    };
    let containers = pod.items_at("spec.containers").iter().chain(pod.items_at("spec.initContainers"));
    let mut resources = containers.filter_map(|container| container.at("resources"));
    !resources.any(asks) && !pod.at("spec.resources").is_some_and(asks)
}

fn reaches_other_namespaces(pod: &Value) -> bool {
    let reaches =
        |term: &Value| !term.items_at("namespaces").is_empty() || term.at("namespaceSelector").is_some();
    ["spec.affinity.podAffinity", "spec.affinity.podAntiAffinity"].iter().filter_map(|path| pod.at(path)).any(
        |affinity| {
            affinity.items_at("requiredDuringSchedulingIgnoredDuringExecution").iter().any(reaches)
                || affinity
                    .items_at("preferredDuringSchedulingIgnoredDuringExecution")
                    .iter()
                    .filter_map(|weighted| weighted.at("podAffinityTerm"))
                    .any(reaches)
        },
    )
}

/// Every container has to ask for what is limited, unless the pod does so as a whole.
pub(super) fn check_constraints(limited: &[&str], pod: &Value) -> Result<(), String> {
    let says_itself = |list: &str| pod.map_at(list).keys().any(|name| is_pod_level(name));
    if says_itself("spec.resources.requests") || says_itself("spec.resources.limits") {
        return Ok(());
    }
    let is_required = |name: &str| {
        matches!(name, "cpu" | "memory" | "requests.cpu" | "requests.memory" | "limits.cpu" | "limits.memory")
    };
    let mut missing: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for container in pod.items_at("spec.containers").iter().chain(pod.items_at("spec.initContainers")) {
        let list = |list: &str| quantities(container.map_at(&format!("resources.{list}")));
        let usage = by_quota_name(&list("requests"), &list("limits"));
        for name in limited.iter().filter(|name| is_required(name) && !usage.contains_key(**name)) {
            missing.entry(name).or_default().insert(container.str_at("name"));
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    let missing: Vec<String> = missing
        .into_iter()
        .map(|(name, containers)| {
            format!("{name} for: {}", containers.into_iter().collect::<Vec<_>>().join(","))
        })
        .collect();
    Err(format!("must specify {}", missing.join("; ")))
}

/// Adds what a pod uses; one that has ended is only counted.
pub(super) fn add_usage(usage: &mut Quantities, pod: &Value, now: Timestamp) {
    if has_ended(pod, now) {
        return;
    }
    usage.insert("pods".to_owned(), number(1));
    let mut requests = of_pod(pod, "requests", |container| effective(pod, container, "requests"));
    let mut limits = of_pod(pod, "limits", |container| effective(pod, container, "limits"));
    let overhead = quantities(pod.map_at("spec.overhead"));
    add(&mut requests, &overhead);
    for (name, limit) in limits.iter_mut().filter(|(_, limit)| !limit.is_zero()) {
        if let Some(overhead) = overhead.get(name) {
            limit.add(overhead);
        }
    }
    usage.extend(by_quota_name(&requests, &limits));
}

fn has_ended(pod: &Value, now: Timestamp) -> bool {
    if matches!(pod.str_at("status.phase"), "Failed" | "Succeeded") {
        return true;
    }
    let grace = pod.i64_at("metadata.deletionGracePeriodSeconds");
    match (parse_time(pod.str_at("metadata.deletionTimestamp")), grace) {
        (Some(deleted), Some(grace)) => now.duration_since(deleted) > SignedDuration::from_secs(grace),
        _ => false,
    }
}

/// What a container asks for, or still has while a resize is under way.
fn effective(pod: &Value, container: &Value, list: &str) -> Quantities {
    let wanted = quantities(container.map_at(&format!("resources.{list}")));
    let name = container.str_at("name");
    let statuses = ["status.containerStatuses", "status.initContainerStatuses"];
    let status = statuses
        .iter()
        .flat_map(|path| pod.items_at(path))
        .find(|status| status.str_at("name") == name && status.at("resources").is_some());
    let Some(status) = status else { return wanted };
    let is_pending = |condition: &&Value| condition.str_at("type") == "PodResizePending";
    let pending = pod.items_at("status.conditions").iter().find(is_pending);
    let is_infeasible = pending.is_some_and(|condition| condition.str_at("reason") == "Infeasible");
    let mut amounts = quantities(status.map_at(&format!("resources.{list}")));
    if list == "requests" {
        raise(&mut amounts, &quantities(status.map_at("allocatedResources")));
    }
    if !is_infeasible {
        raise(&mut amounts, &wanted);
    }
    amounts
}

/// Requests and limits under the names that quotas have for them.
fn by_quota_name(requests: &Quantities, limits: &Quantities) -> Quantities {
    let mut usage = Quantities::new();
    for (name, amount) in requests {
        let is_counted_plain = NATIVE.contains(&name.as_str()) || name.starts_with(HUGE_PAGES);
        if is_counted_plain {
            usage.insert(name.clone(), amount.clone());
        }
        let is_extended = !is_native(name) && !name.starts_with(REQUESTS) || name.starts_with(DEVICE_CLASS);
        if is_counted_plain || is_extended {
            usage.insert(format!("{REQUESTS}{name}"), amount.clone());
        }
    }
    for (name, amount) in limits.iter().filter(|(name, _)| NATIVE.contains(&name.as_str())) {
        usage.insert(format!("{LIMITS}{name}"), amount.clone());
    }
    usage
}
