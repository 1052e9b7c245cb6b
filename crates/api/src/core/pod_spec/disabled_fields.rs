//! Drops the fields of disabled features from a spec, without an error, unless the stored spec uses them already.

use super::containers_of::{ContainerKind, containers, for_each_mut, is_restartable_init};
use crate::gated_fields::{GatedFields, drop_disabled};
use pintle_feature_gates::{Gate, enabled};
use pintle_machinery::{Value, ValueExt};
use std::collections::HashSet;

/// How a container sees `/proc`.
const PROC_MOUNT: &str = "securityContext.procMount";
const DEFAULT_PROC_MOUNT: &str = "Default";
/// The fields behind gates, but stop signals and the restart policies of containers.
const GATED: &[GatedFields] = &[
    GatedFields { gates: &[Gate::UserNamespacesSupport], fields: &["hostUsers"] },
    GatedFields {
        gates: &[Gate::SupplementalGroupsPolicy],
        fields: &["securityContext.supplementalGroupsPolicy"],
    },
    GatedFields { gates: &[Gate::SELinuxChangePolicy], fields: &["securityContext.seLinuxChangePolicy"] },
    GatedFields { gates: &[Gate::PodLevelResources], fields: &["resources"] },
    GatedFields {
        gates: &[Gate::MatchLabelKeysInPodTopologySpread],
        fields: &["topologySpreadConstraints[].matchLabelKeys"],
    },
    GatedFields {
        gates: &[Gate::ClusterTrustBundleProjection],
        fields: &["volumes[].projected.sources[].clusterTrustBundle"],
    },
    GatedFields {
        gates: &[Gate::PodCertificateRequest],
        fields: &["volumes[].projected.sources[].podCertificate"],
    },
    GatedFields { gates: &[Gate::GenericWorkload], fields: &["schedulingGroup"] },
    GatedFields {
        gates: &[Gate::DynamicResourceAllocation],
        fields: &[
            "resourceClaims",
            "containers[].resources.claims",
            "initContainers[].resources.claims",
            "ephemeralContainers[].resources.claims",
        ],
    },
    GatedFields { gates: &[Gate::HostnameOverride], fields: &["hostnameOverride"] },
    GatedFields {
        gates: &[Gate::EnvFiles],
        fields: &[
            "containers[].env[].valueFrom.fileKeyRef",
            "initContainers[].env[].valueFrom.fileKeyRef",
            "ephemeralContainers[].env[].valueFrom.fileKeyRef",
        ],
    },
];

/// Drops the fields of disabled features, unless the stored spec uses them already.
pub fn drop_disabled_fields(spec: &mut Value, old: Option<&Value>) {
    drop_disabled(GATED, spec, old);
    if !enabled(Gate::ProcMountType) && !old.is_some_and(uses_proc_mount) {
        for_each_mut(spec, |_, container| {
            // Stored objects may have the default.
            if container.at(PROC_MOUNT).is_some() {
                container.set(PROC_MOUNT, DEFAULT_PROC_MOUNT);
            }
        });
    }
    if !enabled(Gate::ImageVolume) && !old.is_some_and(|old| old.items_at("volumes").iter().any(is_image)) {
        drop_image_volumes(spec);
    }
    if !enabled(Gate::ContainerStopSignals) && !old.is_some_and(uses_stop_signal) {
        for_each_mut(spec, |_, container| drop_stop_signal(container));
    }
    if !enabled(Gate::ContainerRestartRules) && !old.is_some_and(uses_restart_rules) {
        for_each_mut(spec, drop_restart_rules);
    }
}

/// Whether a container of the spec has a restart policy or rules of its own. Sidecars are older than these.
pub(super) fn uses_restart_rules(spec: &Value) -> bool {
    containers(spec).any(|(kind, container)| match kind {
        ContainerKind::Regular => container.at("restartPolicy").is_some(),
        ContainerKind::Init => {
            !container.items_at("restartPolicyRules").is_empty()
                || container.at("restartPolicy").is_some() && !is_restartable_init(container)
        }
        ContainerKind::Ephemeral => false,
    })
}

fn drop_restart_rules(kind: ContainerKind, container: &mut Value) {
    let is_sidecar = kind == ContainerKind::Init && is_restartable_init(container);
    if !is_sidecar && container.at("restartPolicy").is_some() {
        container.remove_at("restartPolicy");
    }
    if container.at("restartPolicyRules").is_some() {
        container.remove_at("restartPolicyRules");
    }
}

fn uses_proc_mount(spec: &Value) -> bool {
    containers(spec).any(|(_, container)| !["", DEFAULT_PROC_MOUNT].contains(&container.str_at(PROC_MOUNT)))
}

fn is_image(volume: &Value) -> bool {
    volume.at("image").is_some()
}

/// Drops the volumes of images, and their mounts.
fn drop_image_volumes(spec: &mut Value) {
    let images = spec.items_at("volumes").iter().filter(|volume| is_image(volume));
    let names: HashSet<String> = images.map(|volume| volume.str_at("name").to_owned()).collect();
    if names.is_empty() {
        return;
    }
    retain_items(spec, "volumes", |volume| !is_image(volume));
    for_each_mut(spec, |_, container| {
        retain_items(container, "volumeMounts", |mount| !names.contains(mount.str_at("name")));
    });
}

/// Keeps some items of a list. A list without items is none.
fn retain_items(object: &mut Value, list: &str, is_kept: impl Fn(&Value) -> bool) {
    let Some(items) = object.at_mut(list).and_then(Value::as_array_mut) else { return };
    items.retain(is_kept);
    if items.is_empty() {
        object.remove_at(list);
    }
}

fn uses_stop_signal(spec: &Value) -> bool {
    containers(spec).any(|(_, container)| container.at("lifecycle.stopSignal").is_some())
}

/// Drops the stop signal, and a lifecycle that has no other field.
fn drop_stop_signal(container: &mut Value) {
    if container.at("lifecycle.stopSignal").is_some() {
        container.remove_at("lifecycle.stopSignal");
        if container.map_at("lifecycle").values().all(Value::is_null) {
            container.remove_at("lifecycle");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{drop_disabled_fields, drop_restart_rules, for_each_mut, uses_restart_rules};
    use pintle_feature_gates::{EffectiveVersion, FeatureGates, Gate, MinorVersion, testing::override_gates};
    use pintle_machinery::{Value, json};

    #[test]
    fn an_emulated_version_has_no_claims_and_no_volumes_of_images() {
        let _gates =
            override_gates(&FeatureGates::new(EffectiveVersion::emulating(MinorVersion::new(1, 33))));
        let given = json!({
            "resourceClaims": [{"name": "c"}],
            "volumes": [{"name": "i", "image": {"reference": "r"}}, {"name": "e", "emptyDir": {}}],
            "containers": [
                {"resources": {"claims": [{"name": "c"}]}, "volumeMounts": [{"name": "i"}, {"name": "e"}]},
            ],
            "initContainers": [{"volumeMounts": [{"name": "i"}]}],
        });
        let mut spec = given.clone();
        drop_disabled_fields(&mut spec, None);
        let expected = json!({
            "volumes": [{"name": "e", "emptyDir": {}}],
            "containers": [{"resources": {}, "volumeMounts": [{"name": "e"}]}],
            "initContainers": [{}],
        });
        assert_eq!(spec, expected);
        let mut spec = given.clone();
        drop_disabled_fields(&mut spec, Some(&given));
        assert_eq!(spec, given);
    }

    #[test]
    fn an_older_version_without_beta_features_has_no_security_settings_of_today() {
        let mut gates = FeatureGates::new(EffectiveVersion::emulating(MinorVersion::new(1, 33)));
        for gate in [
            Gate::UserNamespacesSupport,
            Gate::SupplementalGroupsPolicy,
            Gate::SELinuxChangePolicy,
            Gate::ProcMountType,
        ] {
            gates = gates.with(gate, false);
        }
        let _gates = override_gates(&gates);
        let given = json!({
            "hostUsers": false,
            "securityContext": {"supplementalGroupsPolicy": "Strict", "seLinuxChangePolicy": "Recursive", "runAsUser": 1},
            "containers": [{"securityContext": {"procMount": "Unmasked"}}],
            "initContainers": [{"securityContext": {}}],
        });
        let mut spec = given.clone();
        drop_disabled_fields(&mut spec, None);
        let expected = json!({
            "securityContext": {"runAsUser": 1},
            "containers": [{"securityContext": {"procMount": "Default"}}],
            "initContainers": [{"securityContext": {}}],
        });
        assert_eq!(spec, expected);
        let mut spec = given.clone();
        drop_disabled_fields(&mut spec, Some(&given));
        assert_eq!(spec, given);
    }

    #[test]
    fn fields_of_features_that_are_off_go_unless_they_were_there() {
        let rows: &[(Value, Value)] = &[
            (json!({"schedulingGroup": {"podGroupName": "g"}}), json!({})),
            (json!({"containers": [{"lifecycle": {"stopSignal": "SIGINT"}}]}), json!({"containers": [{}]})),
            (
                json!({"initContainers": [{"lifecycle": {"stopSignal": "SIGINT", "preStop": {}}}]}),
                json!({"initContainers": [{"lifecycle": {"preStop": {}}}]}),
            ),
            (
                json!({"volumes": [{"projected": {"sources": [{"clusterTrustBundle": {}}, {"podCertificate": {}}]}}]}),
                json!({"volumes": [{"projected": {"sources": [{}, {}]}}]}),
            ),
        ];
        for (given, wanted) in rows {
            let mut spec = given.clone();
            drop_disabled_fields(&mut spec, None);
            assert_eq!(spec, *wanted);
            let mut spec = given.clone();
            drop_disabled_fields(&mut spec, Some(given));
            assert_eq!(spec, *given);
        }
    }

    #[test]
    fn restart_policies_of_containers_go_but_those_of_sidecars() {
        let rules = json!([{"action": "Restart"}]);
        let rows = [
            (json!({"containers": [{"restartPolicy": "Never"}]}), true, json!({"containers": [{}]})),
            (
                json!({"initContainers": [{"restartPolicy": "Never", "restartPolicyRules": rules}]}),
                true,
                json!({"initContainers": [{}]}),
            ),
            (
                json!({"initContainers": [{"restartPolicy": "Always"}]}),
                false,
                json!({"initContainers": [{"restartPolicy": "Always"}]}),
            ),
            (
                json!({"initContainers": [{"restartPolicy": "Always", "restartPolicyRules": rules}]}),
                true,
                json!({"initContainers": [{"restartPolicy": "Always"}]}),
            ),
            // kube-apiserver looks at the policies of containers alone.
            (json!({"containers": [{"restartPolicyRules": rules}]}), false, json!({"containers": [{}]})),
            (
                json!({"ephemeralContainers": [{"restartPolicy": "Never"}]}),
                false,
                json!({"ephemeralContainers": [{}]}),
            ),
        ];
        for (given, is_used, wanted) in rows {
            assert_eq!(uses_restart_rules(&given), is_used, "{given}");
            let mut spec = given;
            for_each_mut(&mut spec, drop_restart_rules);
            assert_eq!(spec, wanted);
        }
    }
}
