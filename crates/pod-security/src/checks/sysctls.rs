//! Pods must not set kernel parameters, except for those of their own namespaces.

use crate::{
    check::{Check, Revision, Violation},
    level::Level,
    pod::{Pod, name},
};
use pintle_machinery::ValueExt;

pub(super) const CHECK: Check = Check {
    id: "sysctls",
    level: Level::Baseline,
    revisions: &[
        Revision::since(0, |pod| check(pod, 0)),
        Revision::since(27, |pod| check(pod, 27)),
        Revision::since(29, |pod| check(pod, 29)),
        Revision::since(32, |pod| check(pod, 32)),
    ],
};

/// The allowed parameters, each with the minor version since which it is allowed.
const ALLOWED: [(&str, u64); 12] = [
    ("kernel.shm_rmid_forced", 0),
    ("net.ipv4.ip_local_port_range", 0),
    ("net.ipv4.tcp_syncookies", 0),
    ("net.ipv4.ping_group_range", 0),
    ("net.ipv4.ip_unprivileged_port_start", 0),
    ("net.ipv4.ip_local_reserved_ports", 27),
    ("net.ipv4.tcp_keepalive_time", 29),
    ("net.ipv4.tcp_fin_timeout", 29),
    ("net.ipv4.tcp_keepalive_intvl", 29),
    ("net.ipv4.tcp_keepalive_probes", 29),
    ("net.ipv4.tcp_rmem", 32),
    ("net.ipv4.tcp_wmem", 32),
];

fn check(pod: &Pod<'_>, minor: u64) -> Option<Violation> {
    let is_allowed =
        |sysctl: &str| ALLOWED.iter().any(|(allowed, since)| *allowed == sysctl && *since <= minor);
    let sysctls = pod.spec().items_at("securityContext.sysctls").iter().map(name);
    let bad: Vec<&str> = sysctls.filter(|sysctl| !is_allowed(sysctl)).collect();
    (!bad.is_empty()).then(|| Violation::new("forbidden sysctls", bad.join(", ")))
}
