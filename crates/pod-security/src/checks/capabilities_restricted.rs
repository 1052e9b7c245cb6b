//! Containers must drop all capabilities and may add the binding of privileged ports only.

use super::capabilities_baseline::{self, adding};
use crate::{
    check::{Check, Revision, Violation},
    level::Level,
    pod::{Pod, name},
    setters::{containers, quoted},
};
use pintle_machinery::{Value, ValueExt};

pub(super) const CHECK: Check = Check {
    id: "capabilities_restricted",
    level: Level::Restricted,
    revisions: &[
        Revision::since(22, check).overriding(&[capabilities_baseline::ID]),
        Revision::since(25, unless_windows).overriding(&[capabilities_baseline::ID]),
    ],
};

fn check(pod: &Pod<'_>) -> Option<Violation> {
    let drops_all = |container: &&Value| {
        container.items_at("securityContext.capabilities.drop").iter().any(|dropped| dropped == "ALL")
    };
    let keeping: Vec<&str> = pod.containers().filter(|container| !drops_all(container)).map(name).collect();
    let (bad, added) = adding(pod, &["NET_BIND_SERVICE"]);
    let mut details = Vec::new();
    if !keeping.is_empty() {
        details
            .push(format!("{} must set securityContext.capabilities.drop=[\"ALL\"]", containers(&keeping)));
    }
    if !bad.is_empty() {
        let added = quoted(added.iter().copied());
        details.push(format!(
            "{} must not include {added} in securityContext.capabilities.add",
            containers(&bad)
        ));
    }
    (!details.is_empty()).then(|| Violation::new("unrestricted capabilities", details.join("; ")))
}

fn unless_windows(pod: &Pod<'_>) -> Option<Violation> {
    if pod.is_windows() { None } else { check(pod) }
}
