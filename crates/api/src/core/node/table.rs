//! The table columns of nodes.

use crate::printing::{NONE, UNKNOWN, age, column, name, text, wide};
use jiff::Timestamp;
use pintle_machinery::{Value, ValueExt};
use pintle_registry::{Cell, Column};
use std::collections::BTreeSet;

const ROLE_PREFIX: &str = "node-role.kubernetes.io/";
const ROLE: &str = "kubernetes.io/role";

pub(super) fn columns() -> Vec<Column> {
    vec![
        Column::name(),
        column("Status", "Whether it is ready, and whether pods are scheduled on it."),
        column("Roles", "What it is for."),
        Column::age(),
        column("Version", "The version of its kubelet."),
        wide("Internal-IP", "Its address within the cluster."),
        wide("External-IP", "Its address for others."),
        wide("OS-Image", "Its operating system."),
        wide("Kernel-Version", "Its kernel and architecture."),
        wide("Container-Runtime", "What runs its containers."),
    ]
}

pub(super) fn cells(node: &Value, now: Timestamp) -> Vec<Cell> {
    let info = |member: &str| match node.str_at(&format!("status.nodeInfo.{member}")) {
        "" => UNKNOWN,
        text => text,
    };
    let kernel = match node.str_at("status.nodeInfo.architecture") {
        "" => info("kernelVersion").to_owned(),
        architecture => format!("{} ({architecture})", info("kernelVersion")),
    };
    vec![
        name(node),
        status(node).into(),
        roles(node).into(),
        age(node, now),
        text(node, "status.nodeInfo.kubeletVersion"),
        address(node, "InternalIP").into(),
        address(node, "ExternalIP").into(),
        info("osImage").into(),
        kernel.into(),
        info("containerRuntimeVersion").into(),
    ]
}

fn status(node: &Value) -> String {
    let conditions = node.items_at("status.conditions");
    let ready = conditions.iter().rev().find(|condition| condition.str_at("type") == "Ready");
    let status = match ready.map(|condition| condition.str_at("status")) {
        None => "Unknown",
        Some("True") => "Ready",
        Some(_) => "NotReady",
    };
    match node.bool_at("spec.unschedulable") {
        true => format!("{status},SchedulingDisabled"),
        false => status.to_owned(),
    }
}

fn roles(node: &Value) -> String {
    let labels = node.map_at("metadata.labels").iter();
    let roles: BTreeSet<&str> = labels
        .filter_map(|(key, value)| match key.strip_prefix(ROLE_PREFIX) {
            Some(role) => Some(role),
            None if key == ROLE => value.as_str(),
            None => None,
        })
        .filter(|role| !role.is_empty())
        .collect();
    if roles.is_empty() { NONE.to_owned() } else { roles.into_iter().collect::<Vec<_>>().join(",") }
}

fn address<'a>(node: &'a Value, address_type: &str) -> &'a str {
    let mut addresses = node.items_at("status.addresses").iter();
    addresses.find(|address| address.str_at("type") == address_type).map_or(NONE, |one| one.str_at("address"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    #[test]
    fn nodes_print_their_state() {
        let now = "2024-01-01T00:02:00Z".parse().unwrap();
        let node = json!({
            "metadata": {
                "name": "n", "creationTimestamp": "2024-01-01T00:01:00Z",
                "labels": {"node-role.kubernetes.io/worker": "", "kubernetes.io/role": "old", "a": "b"},
            },
            "spec": {"unschedulable": true},
            "status": {
                "conditions": [{"type": "Ready", "status": "False"}],
                "addresses": [{"type": "InternalIP", "address": "10.9.0.1"}],
                "nodeInfo": {"kernelVersion": "6.1.0", "architecture": "amd64", "kubeletVersion": "v1.36.0"},
            },
        });
        let expected = json!([
            "n",
            "NotReady,SchedulingDisabled",
            "old,worker",
            "60s",
            "v1.36.0",
            "10.9.0.1",
            "<none>",
            "<unknown>",
            "6.1.0 (amd64)",
            "<unknown>",
        ]);
        assert_eq!(Value::from(cells(&node, now)), expected);
        assert_eq!(status(&json!({})), "Unknown");
    }
}
