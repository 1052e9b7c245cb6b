//! Probes and lifecycle handlers must not connect to other hosts.

use crate::{
    check::{Check, Revision, Violation},
    level::Level,
    pod::{Pod, name},
    setters::{containers, plural, quoted},
};
use pintle_machinery::ValueExt;
use std::collections::BTreeSet;

pub(super) const CHECK: Check = Check {
    id: "hostProbesAndHostLifecycle",
    level: Level::Baseline,
    revisions: &[Revision::since(34, check)],
};

const HANDLERS: [&str; 5] =
    ["livenessProbe", "readinessProbe", "startupProbe", "lifecycle.postStart", "lifecycle.preStop"];

fn check(pod: &Pod<'_>) -> Option<Violation> {
    let (mut bad, mut hosts) = (BTreeSet::new(), BTreeSet::new());
    for container in pod.containers() {
        let handlers = HANDLERS.into_iter().filter_map(|path| container.at(path));
        for host in
            handlers.flat_map(|handler| ["httpGet.host", "tcpSocket.host"].map(|path| handler.str_at(path)))
        {
            if !host.is_empty() {
                bad.insert(name(container));
                hosts.insert(host);
            }
        }
    }
    let detail = || {
        let bad: Vec<&str> = bad.iter().copied().collect();
        let verb = plural(bad.len(), "uses", "use");
        let noun = plural(hosts.len(), "probe or lifecycle host", "probe or lifecycle hosts");
        format!("{} {verb} {noun} {}", containers(&bad), quoted(hosts.iter().copied()))
    };
    (!bad.is_empty()).then(|| Violation::new("probe or lifecycle host", detail()))
}
