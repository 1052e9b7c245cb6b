//! Containers must not be privileged.

use crate::{
    check::{Check, Revision, Violation},
    level::Level,
    pod::{Pod, name},
    setters::containers,
};
use pintle_machinery::ValueExt;

pub(super) const CHECK: Check =
    Check { id: "privileged", level: Level::Baseline, revisions: &[Revision::since(0, check)] };

fn check(pod: &Pod<'_>) -> Option<Violation> {
    let privileged = pod.containers().filter(|container| container.bool_at("securityContext.privileged"));
    let bad: Vec<&str> = privileged.map(name).collect();
    let detail = || format!("{} must not set securityContext.privileged=true", containers(&bad));
    (!bad.is_empty()).then(|| Violation::new("privileged", detail()))
}
