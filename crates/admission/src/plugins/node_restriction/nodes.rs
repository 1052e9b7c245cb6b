//! The node object of a node: the node cannot change the fields that steer pods to it.

use crate::{AdmissionRequest, Operation};
use pintle_go_forms::quote;
use pintle_machinery::{Map, Status, Text, Value, ValueExt, validation::semantically_equal};
use std::collections::BTreeSet;

/// The labels of Kubernetes' own that a kubelet sets.
const KUBELET_LABELS: [&str; 11] = [
    "beta.kubernetes.io/arch",
    "beta.kubernetes.io/instance-type",
    "beta.kubernetes.io/os",
    "failure-domain.beta.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "kubernetes.io/arch",
    "kubernetes.io/hostname",
    "kubernetes.io/os",
    "node.kubernetes.io/instance-type",
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
];

pub(super) fn admit(request: &AdmissionRequest<'_>, node: &str) -> Result<(), Status> {
    let quoted = quote(node);
    if request.name != node {
        let why = format!("node {quoted} is not allowed to modify node {}", quote(request.name));
        return Err(request.forbidden(why));
    }
    match (request.operation, request.old_object) {
        (Operation::Create, _) => admit_create(request, &quoted),
        (Operation::Update, Some(old)) => admit_update(request, old, &quoted),
        _ => Ok(()),
    }
}

fn admit_create(request: &AdmissionRequest<'_>, quoted: &str) -> Result<(), Status> {
    if request.object.at("spec.configSource").is_some() {
        let why = format!("node {quoted} is not allowed to create pods with a non-nil configSource");
        return Err(request.forbidden(why));
    }
    match forbidden_labels(request.object.map_at("metadata.labels"), &Map::new()) {
        None => Ok(()),
        Some(labels) => {
            Err(request
                .forbidden(format!("node {quoted} is not allowed to set the following labels: {labels}")))
        }
    }
}

fn admit_update(request: &AdmissionRequest<'_>, old: &Value, quoted: &str) -> Result<(), Status> {
    let nothing = Value::Null;
    let is_kept = |path: &str| {
        let (own, old) = (request.object.at(path), old.at(path));
        semantically_equal(own.unwrap_or(&nothing), old.unwrap_or(&nothing))
    };
    let source = "spec.configSource";
    if request.object.at(source).is_some() && !is_kept(source) {
        let why =
            format!("node {quoted} is not allowed to update configSource to a new non-nil configSource");
        return Err(request.forbidden(why));
    }
    if !is_kept("spec.taints") {
        return Err(request.forbidden(format!("node {quoted} is not allowed to modify taints")));
    }
    if !is_kept("metadata.ownerReferences") {
        return Err(request.forbidden(format!("node {quoted} is not allowed to modify ownerReferences")));
    }
    match forbidden_labels(request.object.map_at("metadata.labels"), old.map_at("metadata.labels")) {
        None => Ok(()),
        Some(labels) => Err(request.forbidden(format!("is not allowed to modify labels: {labels}"))),
    }
}

/// The labels that differ and that a node may not change, sorted and separated by commas; `None` when there are none.
fn forbidden_labels(own: &Map, old: &Map) -> Option<String> {
    let keys: BTreeSet<&str> = own.keys().chain(old.keys()).map(Text::as_str).collect();
    let changed = keys.into_iter().filter(|key| own.get(key) != old.get(key));
    let forbidden: Vec<&str> = changed.filter(|key| is_forbidden(key)).collect();
    (!forbidden.is_empty()).then(|| forbidden.join(", "))
}

fn is_forbidden(key: &str) -> bool {
    let prefix = key.split_once('/').map_or("", |(prefix, _)| prefix);
    let is_in =
        |domain: &str| prefix.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    let is_kubernetes = is_in("kubernetes.io") || is_in("k8s.io");
    let is_kubelets =
        KUBELET_LABELS.contains(&key) || is_in("kubelet.kubernetes.io") || is_in("node.kubernetes.io");
    is_in("node-restriction.kubernetes.io") || (is_kubernetes && !is_kubelets)
}
