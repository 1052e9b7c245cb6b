//! The exceptions from the rules of a pod's spec that an update gets.

/// The exceptions from the rules that validation allows.
#[derive(Debug, Clone, Default)]
pub struct PodValidationOptions {
    /// Whether the spec is that of a pod, not of a template.
    pub resource_is_pod: bool,
    /// The deletion cost annotation may have any value.
    pub(super) allow_invalid_pod_deletion_cost: bool,
    /// Label selectors of pod affinity terms may have values that are not valid for labels.
    pub(super) allow_invalid_label_value_in_selector: bool,
    /// Required node affinity may have values that are not valid for labels.
    pub(super) allow_invalid_label_value_in_required_node_affinity: bool,
    /// Quantities of huge pages need not be multiples of the page size.
    pub(super) allow_indivisible_huge_pages: bool,
    /// The label selectors of topology spread constraints are not validated.
    pub(super) allow_invalid_topology_spread_selector: bool,
    /// Label keys of topology spread constraints follow the rules from before they were merged into the selectors.
    pub(super) has_unmerged_label_keys: bool,
    /// Projected tokens may have any path.
    pub(super) allow_non_local_projected_token_path: bool,
    /// Sysctls of kernel namespaces that the pod shares with its host are allowed.
    pub(super) allow_host_sysctls: bool,
    /// `seLinuxChangePolicy` may have any of its values, not only `Recursive`.
    pub(super) allow_any_selinux_change_policy: bool,
    /// Init containers that are not sidecars may have the resize policy `RestartContainer`.
    pub(super) allow_restart_container_for_init: bool,
    /// Pods in a user namespace may have volume devices.
    pub(super) allow_user_namespaces_with_volume_devices: bool,
    /// Pods in a user namespace may use the host network.
    pub(super) allow_user_namespaces_with_host_network: bool,
    /// Only sidecars may have a restart policy, and no container restart rules.
    pub(crate) refuses_restart_rules: bool,
    /// Restart rules may not restart all containers, and sidecars may have none.
    pub(crate) refuses_restarts_of_all: bool,
    /// Tolerations may use the operators `Lt` and `Gt`.
    pub(super) allow_toleration_comparison: bool,
}
