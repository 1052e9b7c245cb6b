//! Pods must not share the network, process and IPC namespaces of their node.

use crate::{
    check::{Check, Revision, Violation},
    level::Level,
    pod::Pod,
};
use pintle_machinery::ValueExt;

pub(super) const CHECK: Check =
    Check { id: "hostNamespaces", level: Level::Baseline, revisions: &[Revision::since(0, check)] };

fn check(pod: &Pod<'_>) -> Option<Violation> {
    let fields = ["hostNetwork", "hostPID", "hostIPC"];
    let shared: Vec<String> = fields
        .into_iter()
        .filter(|field| pod.spec().bool_at(field))
        .map(|field| format!("{field}=true"))
        .collect();
    (!shared.is_empty()).then(|| Violation::new("host namespaces", shared.join(", ")))
}
