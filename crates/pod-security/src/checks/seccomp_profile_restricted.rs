//! The seccomp profile must be set, and not be disabled.

use super::seccomp_profile_baseline::{self, REASON, is_allowed, profile_type};
use crate::{
    check::{Check, Revision, Violation},
    level::Level,
    pod::{Pod, name},
    setters::containers,
};
use pintle_machinery::{Value, ValueExt};

pub(super) const CHECK: Check = Check {
    id: "seccompProfile_restricted",
    level: Level::Restricted,
    revisions: &[
        Revision::since(19, check).overriding(&[seccomp_profile_baseline::ID]),
        Revision::since(25, unless_windows).overriding(&[seccomp_profile_baseline::ID]),
    ],
};

fn check(pod: &Pod<'_>) -> Option<Violation> {
    if let Some(violation) = seccomp_profile_baseline::check(pod) {
        return Some(violation);
    }
    let own = |of: &'_ Value| of.field("securityContext").and_then(profile_type).map(is_allowed);
    if own(pod.spec()) == Some(true) {
        return None;
    }
    let bad: Vec<&str> = pod.containers().filter(|container| own(container).is_none()).map(name).collect();
    let detail = || {
        let containers = containers(&bad);
        format!(
            "pod or {containers} must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\""
        )
    };
    (!bad.is_empty()).then(|| Violation::new(REASON, detail()))
}

fn unless_windows(pod: &Pod<'_>) -> Option<Violation> {
    if pod.is_windows() { None } else { check(pod) }
}
