//! Containers must not gain more privileges than their parent process.

use crate::{
    check::{Check, Revision, Violation},
    level::Level,
    pod::{Pod, name},
    setters::containers,
};
use pintle_machinery::{Value, ValueExt};

pub(super) const CHECK: Check = Check {
    id: "allowPrivilegeEscalation",
    level: Level::Restricted,
    revisions: &[Revision::since(8, check), Revision::since(25, unless_windows)],
};

fn check(pod: &Pod<'_>) -> Option<Violation> {
    let is_bad = |container: &&Value| {
        container.at("securityContext.allowPrivilegeEscalation").and_then(Value::as_bool) != Some(false)
    };
    let bad: Vec<&str> = pod.containers().filter(is_bad).map(name).collect();
    let detail = || format!("{} must set securityContext.allowPrivilegeEscalation=false", containers(&bad));
    (!bad.is_empty()).then(|| Violation::new("allowPrivilegeEscalation != false", detail()))
}

fn unless_windows(pod: &Pod<'_>) -> Option<Violation> {
    if pod.is_windows() { None } else { check(pod) }
}
