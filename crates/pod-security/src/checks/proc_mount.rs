//! The masks of `/proc` must be the default ones.

use crate::{
    check::{Check, Revision, Violation},
    level::Level,
    pod::{Pod, name},
    setters::{containers, quoted},
};
use pintle_machinery::ValueExt;
use std::collections::BTreeSet;

const BASELINE_ID: &str = "procMount";

/// From 1.35 on, pods with a user namespace are free to choose.
pub(super) const BASELINE: Check = Check {
    id: BASELINE_ID,
    level: Level::Baseline,
    revisions: &[Revision::since(0, check), Revision::since(35, unless_user_namespace)],
};

pub(super) const RESTRICTED: Check = Check {
    id: "procMount_restricted",
    level: Level::Restricted,
    revisions: &[Revision::since(35, check).overriding(&[BASELINE_ID])],
};

fn check(pod: &Pod<'_>) -> Option<Violation> {
    let mut types = BTreeSet::new();
    let mut bad = Vec::new();
    for container in pod.containers() {
        if let Some(own) = container.at("securityContext.procMount").filter(|own| **own != "Default") {
            bad.push(name(container));
            types.insert(own.as_str().unwrap_or_default());
        }
    }
    let detail = || {
        let types = quoted(types.iter().copied());
        format!("{} must not set securityContext.procMount to {types}", containers(&bad))
    };
    (!bad.is_empty()).then(|| Violation::new("procMount", detail()))
}

fn unless_user_namespace(pod: &Pod<'_>) -> Option<Violation> {
    if pod.has_user_namespace() { None } else { check(pod) }
}
