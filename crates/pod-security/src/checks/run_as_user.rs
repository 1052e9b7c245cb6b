//! Containers must not run as root explicitly.

use crate::{
    check::{Check, Revision, Violation},
    level::Level,
    pod::Pod,
    setters::Setters,
};
use pintle_machinery::ValueExt;

pub(super) const CHECK: Check = Check {
    id: "runAsUser",
    level: Level::Restricted,
    revisions: &[Revision::since(23, check), Revision::since(35, unless_user_namespace)],
};

fn check(pod: &Pod<'_>) -> Option<Violation> {
    let setters = Setters::of(pod, |context| context.i64_at("runAsUser") == Some(0));
    (!setters.is_empty())
        .then(|| Violation::new("runAsUser=0", format!("{setters} must not set runAsUser=0")))
}

fn unless_user_namespace(pod: &Pod<'_>) -> Option<Violation> {
    if pod.has_user_namespace() { None } else { check(pod) }
}
