//! The seccomp profile must not be disabled.

use crate::{
    check::{Check, Revision, Violation},
    level::Level,
    pod::{Pod, name},
    setters::{Setters, plural, quoted},
};
use pintle_go_forms::quote;
use pintle_machinery::{Value, ValueExt};
use std::collections::BTreeSet;

pub(super) const ID: &str = "seccompProfile_baseline";

pub(super) const CHECK: Check = Check {
    id: ID,
    level: Level::Baseline,
    revisions: &[Revision::since(0, check_annotations), Revision::since(19, check)],
};

pub(super) const REASON: &str = "seccompProfile";

/// The annotations that selected profiles before the field existed: that of the pod, and the prefix of those of containers.
const ANNOTATION: &str = "seccomp.security.alpha.kubernetes.io/pod";
const CONTAINER_ANNOTATION: &str = "container.seccomp.security.alpha.kubernetes.io/";

fn check_annotations(pod: &Pod<'_>) -> Option<Violation> {
    let of_containers =
        pod.containers().map(|container| format!("{CONTAINER_ANNOTATION}{}", name(container)));
    let keys = std::iter::once(ANNOTATION.to_owned()).chain(of_containers);
    let forbidden: BTreeSet<String> = keys
        .filter_map(|key| {
            let value = pod.annotation(&key)?;
            let is_allowed =
                matches!(value, "runtime/default" | "docker/default") || value.starts_with("localhost/");
            (!is_allowed).then(|| format!("{key}={}", quote(value)))
        })
        .collect();
    let noun = plural(forbidden.len(), "annotation", "annotations");
    let values: Vec<&str> = forbidden.iter().map(String::as_str).collect();
    (!values.is_empty()).then(|| Violation::new(REASON, format!("forbidden {noun} {}", values.join(", "))))
}

/// Checks the profiles that are set.
pub(super) fn check(pod: &Pod<'_>) -> Option<Violation> {
    let mut types = BTreeSet::new();
    let setters = Setters::of(pod, |context| match profile_type(context) {
        Some(own) if !is_allowed(own) => {
            types.insert(own);
            true
        }
        _ => false,
    });
    let detail =
        || format!("{setters} must not set securityContext.seccompProfile.type to {}", quoted(types));
    (!setters.is_empty()).then(|| Violation::new(REASON, detail()))
}

/// The type of a security context's profile; `None` without a profile.
pub(super) fn profile_type(context: &Value) -> Option<&str> {
    Some(context.field("seccompProfile")?.str_at("type"))
}

pub(super) fn is_allowed(profile_type: &str) -> bool {
    matches!(profile_type, "RuntimeDefault" | "Localhost")
}
