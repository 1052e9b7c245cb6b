//! The checks of the standards: a file each.

mod allow_privilege_escalation;
mod app_armor_profile;
mod capabilities_baseline;
mod capabilities_restricted;
mod host_namespaces;
mod host_path_volumes;
mod host_ports;
mod host_probes_and_lifecycle;
mod privileged;
mod proc_mount;
mod restricted_volumes;
mod run_as_non_root;
mod run_as_user;
mod se_linux_options;
mod seccomp_profile_baseline;
mod seccomp_profile_restricted;
mod sysctls;
mod windows_host_process;

use crate::check::Check;

/// All checks: those of baseline, then those of restricted, each by name.
pub(crate) static CHECKS: [Check; 19] = [
    app_armor_profile::CHECK,
    capabilities_baseline::CHECK,
    host_namespaces::CHECK,
    host_path_volumes::CHECK,
    host_ports::CHECK,
    host_probes_and_lifecycle::CHECK,
    privileged::CHECK,
    proc_mount::BASELINE,
    se_linux_options::CHECK,
    seccomp_profile_baseline::CHECK,
    sysctls::CHECK,
    windows_host_process::CHECK,
    allow_privilege_escalation::CHECK,
    capabilities_restricted::CHECK,
    proc_mount::RESTRICTED,
    restricted_volumes::CHECK,
    run_as_non_root::CHECK,
    run_as_user::CHECK,
    seccomp_profile_restricted::CHECK,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_are_in_order_and_override_what_exists() {
        let keys: Vec<_> = CHECKS.iter().map(|check| (check.level, check.id)).collect();
        assert!(keys.is_sorted(), "{keys:?}");
        for check in &CHECKS {
            assert!(check.revisions.is_sorted_by(|one, other| one.since < other.since), "{}", check.id);
            for overridden in check.revisions.iter().flat_map(|revision| revision.overrides) {
                assert!(keys.contains(&(crate::Level::Baseline, overridden)), "{overridden}");
            }
        }
    }
}
