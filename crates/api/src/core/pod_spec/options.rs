//! How strict the validation of a spec is. Rules became stricter over time; ratcheting lets an update keep the values
//! that the stored object already has.

use super::containers_of::{containers, is_restartable_init};
use super::{affinity, paths, security_context, topology_spread, volumes};
use crate::resource_list::{huge_page_size, is_huge_page, quantity};
use pintle_machinery::validation::{LabelSelectorOptions, is_valid_label_value, validate_label_selector};
use pintle_machinery::{FieldPath, Map, Value, ValueExt};

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
    /// Label keys of topology spread constraints follow the older rules.
    pub(super) old_spec_violates_match_label_keys: bool,
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
    /// Tolerations may use the operators `Lt` and `Gt`.
    pub(super) allow_toleration_comparison: bool,
}

impl PodValidationOptions {
    /// The options for a pod or a template; `old` is the stored object on update.
    pub fn new(_new: &Value, old: Option<&Value>) -> PodValidationOptions {
        let Some(old) = old else { return PodValidationOptions::default() };
        let spec = old.at("spec").unwrap_or(&Value::Null);
        let shares_user_namespace = spec.at("hostUsers").is_none_or(|users| users.as_bool() != Some(false));
        PodValidationOptions {
            resource_is_pod: false,
            allow_invalid_pod_deletion_cost: !super::annotations::has_valid_deletion_cost(
                old.map_at("metadata.annotations"),
            ),
            allow_invalid_label_value_in_selector: affinity::has_invalid_selector(spec),
            allow_invalid_label_value_in_required_node_affinity: has_invalid_value_in_node_affinity(spec),
            allow_indivisible_huge_pages: has_indivisible_huge_pages(spec),
            allow_invalid_topology_spread_selector: has_invalid_spread_selector(spec),
            old_spec_violates_match_label_keys: topology_spread::has_invalid_label_keys(spec),
            allow_non_local_projected_token_path: volumes::token_paths(spec)
                .any(|path| !paths::validate_local_non_reserved(path, &FieldPath::default()).is_empty()),
            allow_host_sysctls: security_context::has_host_sysctl(spec),
            allow_any_selinux_change_policy: spec.at("securityContext.seLinuxChangePolicy").is_some(),
            allow_restart_container_for_init: has_restart_container_for_init(spec),
            allow_user_namespaces_with_volume_devices: !shares_user_namespace
                && containers(spec).any(|(_, container)| !container.items_at("volumeDevices").is_empty()),
            allow_user_namespaces_with_host_network: !shares_user_namespace && spec.bool_at("hostNetwork"),
            allow_toleration_comparison: spec
                .items_at("tolerations")
                .iter()
                .any(|toleration| matches!(toleration.str_at("operator"), "Lt" | "Gt")),
        }
    }

    /// The options for the pod template of a workload; `old` is the stored template on update.
    pub fn for_template(new: &Value, old: Option<&Value>) -> PodValidationOptions {
        PodValidationOptions::new(new, old)
    }

    /// The options for a pod; `old` is the stored pod on update.
    pub fn for_pod(new: &Value, old: Option<&Value>) -> PodValidationOptions {
        PodValidationOptions { resource_is_pod: true, ..PodValidationOptions::new(new, old) }
    }
}

fn has_invalid_value_in_node_affinity(spec: &Value) -> bool {
    let terms = "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms";
    spec.items_at(terms)
        .iter()
        .flat_map(|term| term.items_at("matchExpressions"))
        .flat_map(|expression| expression.items_at("values"))
        .any(|value| !is_valid_label_value(value.as_str().unwrap_or_default()).is_empty())
}

fn has_indivisible_huge_pages(spec: &Value) -> bool {
    let is_indivisible =
        |list: &Map| list.iter().any(|(name, value)| is_huge_page(name) && !is_divisible(name, value));
    containers(spec).any(|(_, container)| {
        is_indivisible(container.map_at("resources.limits"))
            || is_indivisible(container.map_at("resources.requests"))
    })
}

/// Whether a quantity of huge pages is a multiple of the page size.
pub(super) fn is_divisible(name: &str, value: &Value) -> bool {
    let Some(size) = huge_page_size(name).and_then(|size| size.as_i64()).filter(|size| *size > 0) else {
        return false;
    };
    quantity(value).value() % size == 0
}

fn has_invalid_spread_selector(spec: &Value) -> bool {
    spec.items_at("topologySpreadConstraints").iter().any(|constraint| {
        let selector = constraint.at("labelSelector").unwrap_or(&Value::Null);
        !validate_label_selector(selector, LabelSelectorOptions::default(), &FieldPath::default()).is_empty()
    })
}

fn has_restart_container_for_init(spec: &Value) -> bool {
    spec.items_at("initContainers")
        .iter()
        .filter(|container| !is_restartable_init(container))
        .flat_map(|container| container.items_at("resizePolicy"))
        .any(|policy| policy.str_at("restartPolicy") == "RestartContainer")
}
