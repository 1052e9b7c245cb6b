//! Containers must not use ports of their node.

use crate::{
    check::{Check, Revision, Violation},
    level::Level,
    pod::{Pod, name},
    setters::{containers, plural},
};
use pintle_machinery::{Value, ValueExt};
use std::collections::BTreeSet;

pub(super) const CHECK: Check =
    Check { id: "hostPorts", level: Level::Baseline, revisions: &[Revision::since(0, check)] };

fn check(pod: &Pod<'_>) -> Option<Violation> {
    let mut ports = BTreeSet::new();
    let mut bad = Vec::new();
    for container in pod.containers() {
        let used = container.items_at("ports").iter().filter_map(host_port);
        if used.map(|port| ports.insert(port)).count() > 0 {
            bad.push(name(container));
        }
    }
    let detail = || {
        let (verb, noun) = (plural(bad.len(), "uses", "use"), plural(ports.len(), "hostPort", "hostPorts"));
        // Ports are sorted as texts.
        let ports: Vec<&str> = ports.iter().map(String::as_str).collect();
        format!("{} {verb} {noun} {}", containers(&bad), ports.join(", "))
    };
    (!bad.is_empty()).then(|| Violation::new("hostPort", detail()))
}

fn host_port(port: &Value) -> Option<String> {
    port.i64_at("hostPort").filter(|port| *port != 0).map(|port| port.to_string())
}
