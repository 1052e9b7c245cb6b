//! Containers must be required to run as another user than root.

use crate::{
    check::{Check, Revision, Violation},
    level::Level,
    pod::{Pod, name},
    setters::{Setters, containers},
};
use pintle_machinery::{Value, ValueExt};

pub(super) const CHECK: Check = Check {
    id: "runAsNonRoot",
    level: Level::Restricted,
    revisions: &[Revision::since(0, check), Revision::since(35, unless_user_namespace)],
};

const REASON: &str = "runAsNonRoot != true";

fn check(pod: &Pod<'_>) -> Option<Violation> {
    let explicit = |context: &Value| context.field("runAsNonRoot").and_then(Value::as_bool);
    let setters = Setters::of(pod, |context| explicit(context) == Some(false));
    if !setters.is_empty() {
        let detail = format!("{setters} must not set securityContext.runAsNonRoot=false");
        return Some(Violation::new(REASON, detail));
    }
    if pod.spec().bool_at("securityContext.runAsNonRoot") {
        return None;
    }
    let is_unset = |container: &&Value| container.at("securityContext.runAsNonRoot").is_none();
    let bad: Vec<&str> = pod.containers().filter(is_unset).map(name).collect();
    let detail = || format!("pod or {} must set securityContext.runAsNonRoot=true", containers(&bad));
    (!bad.is_empty()).then(|| Violation::new(REASON, detail()))
}

fn unless_user_namespace(pod: &Pod<'_>) -> Option<Violation> {
    if pod.has_user_namespace() { None } else { check(pod) }
}
