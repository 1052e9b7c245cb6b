//! Computes the exceptions that an update of a spec gets. Rules became stricter over time; ratcheting lets an update keep
//! the values that the stored object already has.

use super::containers_of::{ContainerKind, containers, is_restartable_init};
use super::resources::is_divisible;
use super::{
    PodValidationOptions, affinity, annotations, disabled_fields, paths, security_context, topology_spread,
    volumes,
};
use crate::resource_list::is_huge_page;
use pintle_feature_gates::{Gate, enabled};
use pintle_machinery::validation::{LabelSelectorOptions, is_valid_label_value, validate_label_selector};
use pintle_machinery::{FieldPath, Map, Value, ValueExt};

impl PodValidationOptions {
    /// The options for the pod template of a workload; `old` is the stored template on update.
    pub fn for_template(old: Option<&Value>) -> PodValidationOptions {
        let enabled = PodValidationOptions {
            allow_invalid_pod_deletion_cost: !enabled(Gate::PodDeletionCost),
            allow_any_selinux_change_policy: enabled(Gate::SELinuxMount),
            allow_user_namespaces_with_host_network: enabled(Gate::UserNamespacesHostNetworkSupport),
            allow_toleration_comparison: enabled(Gate::TaintTolerationComparisonOperators),
            has_unmerged_label_keys: topology_spread::has_unmerged_label_keys(None),
            refuses_restart_rules: !enabled(Gate::ContainerRestartRules),
            refuses_restarts_of_all: !enabled(Gate::RestartAllContainersOnContainerExits),
            ..PodValidationOptions::default()
        };
        let Some(old) = old else { return enabled };
        let spec = old.at("spec").unwrap_or(&Value::Null);
        let shares_user_namespace = spec.at("hostUsers").is_none_or(|users| users.as_bool() != Some(false));
        PodValidationOptions {
            resource_is_pod: false,
            allow_invalid_pod_deletion_cost: enabled.allow_invalid_pod_deletion_cost
                || !annotations::has_valid_deletion_cost(old.map_at("metadata.annotations")),
            allow_invalid_label_value_in_selector: affinity::has_invalid_selector(spec),
            allow_invalid_label_value_in_required_node_affinity: has_invalid_value_in_node_affinity(spec),
            allow_indivisible_huge_pages: has_indivisible_huge_pages(spec),
            allow_invalid_topology_spread_selector: has_invalid_spread_selector(spec),
            has_unmerged_label_keys: topology_spread::has_unmerged_label_keys(Some(spec)),
            allow_non_local_projected_token_path: volumes::token_paths(spec)
                .any(|path| !paths::validate_local_non_reserved(path, &FieldPath::default()).is_empty()),
            allow_host_sysctls: security_context::has_host_sysctl(spec),
            allow_any_selinux_change_policy: enabled.allow_any_selinux_change_policy
                || spec.at("securityContext.seLinuxChangePolicy").is_some(),
            allow_restart_container_for_init: has_restart_container_for_init(spec),
            allow_user_namespaces_with_volume_devices: !shares_user_namespace
                && containers(spec).any(|(_, container)| !container.items_at("volumeDevices").is_empty()),
            allow_user_namespaces_with_host_network: enabled.allow_user_namespaces_with_host_network
                || !shares_user_namespace && spec.bool_at("hostNetwork"),
            refuses_restart_rules: enabled.refuses_restart_rules
                && !disabled_fields::uses_restart_rules(spec),
            refuses_restarts_of_all: enabled.refuses_restarts_of_all && !restarts_all(spec),
            allow_toleration_comparison: enabled.allow_toleration_comparison || compares_in_tolerations(spec),
        }
    }

    /// The options for a pod; `old` is the stored pod on update.
    pub fn for_pod(old: Option<&Value>) -> PodValidationOptions {
        PodValidationOptions { resource_is_pod: true, ..PodValidationOptions::for_template(old) }
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

fn compares_in_tolerations(spec: &Value) -> bool {
    spec.items_at("tolerations").iter().any(|toleration| matches!(toleration.str_at("operator"), "Lt" | "Gt"))
}

fn has_invalid_spread_selector(spec: &Value) -> bool {
    spec.items_at("topologySpreadConstraints").iter().any(|constraint| {
        let selector = constraint.at("labelSelector").unwrap_or(&Value::Null);
        !validate_label_selector(selector, LabelSelectorOptions::default(), &FieldPath::default()).is_empty()
    })
}

/// Whether the restart rules of a container restart all, or a sidecar has rules.
fn restarts_all(spec: &Value) -> bool {
    containers(spec).filter(|(kind, _)| *kind != ContainerKind::Ephemeral).any(|(kind, container)| {
        let rules = container.items_at("restartPolicyRules");
        let is_sidecar = kind == ContainerKind::Init && is_restartable_init(container);
        is_sidecar && !rules.is_empty()
            || rules.iter().any(|rule| rule.str_at("action") == "RestartAllContainers")
    })
}

fn has_restart_container_for_init(spec: &Value) -> bool {
    spec.items_at("initContainers")
        .iter()
        .filter(|container| !is_restartable_init(container))
        .flat_map(|container| container.items_at("resizePolicy"))
        .any(|policy| policy.str_at("restartPolicy") == "RestartContainer")
}
