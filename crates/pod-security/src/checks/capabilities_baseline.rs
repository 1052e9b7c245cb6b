//! Containers must not add capabilities beyond the default set of container runtimes.

use crate::{
    check::{Check, Revision, Violation},
    level::Level,
    pod::{Pod, name},
    setters::{containers, quoted},
};
use pintle_machinery::{Value, ValueExt};
use std::collections::BTreeSet;

pub(super) const ID: &str = "capabilities_baseline";

pub(super) const CHECK: Check =
    Check { id: ID, level: Level::Baseline, revisions: &[Revision::since(0, check)] };

const DEFAULT: [&str; 13] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];

fn check(pod: &Pod<'_>) -> Option<Violation> {
    let (bad, added) = adding(pod, &DEFAULT);
    let detail = || {
        let added = quoted(added.iter().copied());
        format!("{} must not include {added} in securityContext.capabilities.add", containers(&bad))
    };
    (!bad.is_empty()).then(|| Violation::new("non-default capabilities", detail()))
}

/// The containers that add other capabilities than these, and the other capabilities.
pub(super) fn adding<'a>(pod: &Pod<'a>, allowed: &[&str]) -> (Vec<&'a str>, BTreeSet<&'a str>) {
    let mut others = BTreeSet::new();
    let mut bad = Vec::new();
    for container in pod.containers() {
        let added = container.items_at("securityContext.capabilities.add").iter().filter_map(Value::as_str);
        let before = added.filter(|added| !allowed.contains(added)).map(|added| others.insert(added)).count();
        if before > 0 {
            bad.push(name(container));
        }
    }
    (bad, others)
}
