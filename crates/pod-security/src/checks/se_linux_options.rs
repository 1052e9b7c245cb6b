//! The `SELinux` type must be one of those for containers; user and role must not be set.

use crate::{
    check::{Check, Revision, Violation},
    level::Level,
    pod::Pod,
    setters::{Setters, plural, quoted},
};
use pintle_machinery::ValueExt;
use std::collections::BTreeSet;

pub(super) const CHECK: Check = Check {
    id: "seLinuxOptions",
    level: Level::Baseline,
    revisions: &[
        Revision::since(0, |pod| check(pod, &TYPES)),
        Revision::since(31, |pod| check(pod, &TYPES_1_31)),
    ],
};

const TYPES: [&str; 4] = ["", "container_t", "container_init_t", "container_kvm_t"];
const TYPES_1_31: [&str; 5] =
    ["", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"];

fn check(pod: &Pod<'_>, allowed: &[&str]) -> Option<Violation> {
    let mut types = BTreeSet::new();
    let (mut sets_user, mut sets_role) = (false, false);
    let setters = Setters::of(pod, |context| {
        let Some(options) = context.field("seLinuxOptions") else { return false };
        let of_type = options.str_at("type");
        let bad_type = !allowed.contains(&of_type);
        if bad_type {
            types.insert(of_type);
        }
        let (user, role) = (!options.str_at("user").is_empty(), !options.str_at("role").is_empty());
        sets_user |= user;
        sets_role |= role;
        bad_type || user || role
    });
    if setters.is_empty() {
        return None;
    }
    let mut forbidden = Vec::new();
    if !types.is_empty() {
        forbidden.push(format!("{} {}", plural(types.len(), "type", "types"), quoted(types)));
    }
    if sets_user {
        forbidden.push("user may not be set".to_owned());
    }
    if sets_role {
        forbidden.push("role may not be set".to_owned());
    }
    let detail = format!("{setters} set forbidden securityContext.seLinuxOptions: {}", forbidden.join("; "));
    Some(Violation::new("seLinuxOptions", detail))
}
