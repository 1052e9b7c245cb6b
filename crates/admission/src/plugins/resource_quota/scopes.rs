//! Evaluates the scopes of quotas
//! (<https://kubernetes.io/docs/concepts/policy/resource-quotas/#quota-scopes>).

use pintle_feature_gates::{Gate, enabled};
use pintle_machinery::{Value, ValueExt};

/// Whether a pod is in a scope.
pub(super) fn holds_pod(scope: &str, operator: &str, values: &[Value], pod: &Value) -> bool {
    match scope {
        "Terminating" => is_terminating(pod),
        "NotTerminating" => !is_terminating(pod),
        "BestEffort" => is_best_effort(pod),
        "NotBestEffort" => !is_best_effort(pod),
        "PriorityClass" => {
            let class = Some(pod.str_at("spec.priorityClassName")).filter(|class| !class.is_empty());
            selects(operator, values, class)
        }
        "CrossNamespacePodAffinity" => has_affinity_across_namespaces(pod),
        _ => false,
    }
}

/// Whether a claim is in a scope. During a change of its attributes class it may belong to two.
pub(super) fn holds_claim(scope: &str, operator: &str, values: &[Value], claim: &Value) -> bool {
    if scope != "VolumeAttributesClass" || !enabled(Gate::VolumeAttributesClass) {
        return false;
    }
    let classes: Vec<&str> = [
        "spec.volumeAttributesClassName",
        "status.currentVolumeAttributesClassName",
        "status.modifyVolumeStatus.targetVolumeAttributesClassName",
    ]
    .into_iter()
    .map(|path| claim.str_at(path))
    .filter(|class| !class.is_empty())
    .collect();
    match classes.as_slice() {
        [] => selects(operator, values, None),
        classes => classes.iter().any(|class| selects(operator, values, Some(class))),
    }
}

/// Whether the pod has an active deadline.
pub(super) fn is_terminating(pod: &Value) -> bool {
    pod.i64_at("spec.activeDeadlineSeconds").is_some_and(|seconds| seconds >= 0)
}

/// The QoS class is fixed when the pod is created.
fn is_best_effort(pod: &Value) -> bool {
    pod.str_at("status.qosClass") == "BestEffort"
}

fn selects(operator: &str, values: &[Value], class: Option<&str>) -> bool {
    let is_listed = class.is_some_and(|class| values.iter().any(|value| value.as_str() == Some(class)));
    match operator {
        "In" => is_listed,
        "NotIn" => !is_listed,
        "Exists" => class.is_some(),
        "DoesNotExist" => class.is_none(),
        _ => false,
    }
}

fn has_affinity_across_namespaces(pod: &Value) -> bool {
    let crosses =
        |term: &Value| !term.items_at("namespaces").is_empty() || term.at("namespaceSelector").is_some();
    ["spec.affinity.podAffinity", "spec.affinity.podAntiAffinity"]
        .into_iter()
        .filter_map(|path| pod.at(path))
        .any(|affinity| {
            let preferred = affinity.items_at("preferredDuringSchedulingIgnoredDuringExecution");
            affinity.items_at("requiredDuringSchedulingIgnoredDuringExecution").iter().any(crosses)
                || preferred.iter().filter_map(|one| one.at("podAffinityTerm")).any(crosses)
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_feature_gates::{EffectiveVersion, FeatureGates, MinorVersion, testing::override_gates};
    use pintle_machinery::json;

    #[test]
    fn an_emulated_version_has_no_scope_of_attributes_classes() {
        let claim = json!({"spec": {"volumeAttributesClassName": "a"}});
        let holds = || holds_claim("VolumeAttributesClass", "Exists", &[], &claim);
        assert!(holds());
        let _gates =
            override_gates(&FeatureGates::new(EffectiveVersion::emulating(MinorVersion::new(1, 33))));
        assert!(!holds());
    }
}
