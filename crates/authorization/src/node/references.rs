//! Parses the references of pods, volumes and related objects from their cached JSON.
//!
//! Only relevant fields are parsed, and strings are borrowed: this runs for every write of an assigned pod.

use serde::Deserialize;
use std::borrow::Cow;
use std::collections::HashMap;

#[derive(Deserialize, Default)]
#[serde(default)]
struct Name<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct SecretRef<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    namespace: Cow<'a, str>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct PodMeta<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    annotations: Option<HashMap<Cow<'a, str>, serde::de::IgnoredAny>>,
}

/// The fields of a pod that determine the objects its node may read.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct Pod<'a> {
    #[serde(borrow)]
    metadata: PodMeta<'a>,
    #[serde(borrow)]
    spec: PodSpec<'a>,
    #[serde(borrow)]
    status: PodStatus<'a>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct PodSpec<'a> {
    #[serde(borrow)]
    node_name: Cow<'a, str>,
    #[serde(borrow)]
    service_account_name: Cow<'a, str>,
    #[serde(borrow)]
    image_pull_secrets: Option<Vec<Name<'a>>>,
    #[serde(borrow)]
    containers: Option<Vec<Container<'a>>>,
    #[serde(borrow)]
    init_containers: Option<Vec<Container<'a>>>,
    #[serde(borrow)]
    ephemeral_containers: Option<Vec<Container<'a>>>,
    #[serde(borrow)]
    volumes: Option<Vec<Volume<'a>>>,
    #[serde(borrow)]
    resource_claims: Option<Vec<PodResourceClaim<'a>>>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct PodStatus<'a> {
    #[serde(borrow)]
    resource_claim_statuses: Option<Vec<ResourceClaimStatus<'a>>>,
    #[serde(borrow)]
    extended_resource_claim_status: Option<ExtendedResourceClaimStatus<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct ResourceClaimStatus<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    resource_claim_name: Option<Cow<'a, str>>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct ExtendedResourceClaimStatus<'a> {
    #[serde(borrow)]
    resource_claim_name: Cow<'a, str>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct PodResourceClaim<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    resource_claim_name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    resource_claim_template_name: Option<Cow<'a, str>>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Container<'a> {
    #[serde(borrow)]
    env: Option<Vec<EnvVar<'a>>>,
    #[serde(borrow)]
    env_from: Option<Vec<EnvFrom<'a>>>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct EnvVar<'a> {
    #[serde(borrow)]
    value_from: Option<EnvVarSource<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct EnvVarSource<'a> {
    #[serde(borrow)]
    secret_key_ref: Option<Name<'a>>,
    #[serde(borrow)]
    config_map_key_ref: Option<Name<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct EnvFrom<'a> {
    #[serde(borrow)]
    secret_ref: Option<Name<'a>>,
    #[serde(borrow)]
    config_map_ref: Option<Name<'a>>,
}

/// A volume driver with a secret reference.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct WithSecretRef<'a> {
    #[serde(borrow)]
    secret_ref: Option<SecretRef<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct WithSecretName<'a> {
    #[serde(borrow)]
    secret_name: Cow<'a, str>,
    #[serde(borrow)]
    secret_namespace: Option<Cow<'a, str>>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Csi<'a> {
    #[serde(borrow)]
    node_publish_secret_ref: Option<SecretRef<'a>>,
    #[serde(borrow)]
    node_stage_secret_ref: Option<SecretRef<'a>>,
    #[serde(borrow)]
    node_expand_secret_ref: Option<SecretRef<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Claim<'a> {
    #[serde(borrow)]
    claim_name: Cow<'a, str>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Projected<'a> {
    #[serde(borrow)]
    sources: Option<Vec<Projection<'a>>>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Projection<'a> {
    #[serde(borrow)]
    secret: Option<Name<'a>>,
    #[serde(borrow)]
    config_map: Option<Name<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Volume<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    azure_file: Option<WithSecretName<'a>>,
    #[serde(borrow)]
    cephfs: Option<WithSecretRef<'a>>,
    #[serde(borrow)]
    cinder: Option<WithSecretRef<'a>>,
    #[serde(borrow)]
    flex_volume: Option<WithSecretRef<'a>>,
    #[serde(borrow)]
    rbd: Option<WithSecretRef<'a>>,
    #[serde(borrow, rename = "scaleIO")]
    scale_io: Option<WithSecretRef<'a>>,
    #[serde(borrow)]
    iscsi: Option<WithSecretRef<'a>>,
    #[serde(borrow)]
    storageos: Option<WithSecretRef<'a>>,
    #[serde(borrow)]
    csi: Option<Csi<'a>>,
    #[serde(borrow)]
    secret: Option<WithSecretName<'a>>,
    #[serde(borrow)]
    config_map: Option<Name<'a>>,
    #[serde(borrow)]
    projected: Option<Projected<'a>>,
    #[serde(borrow)]
    persistent_volume_claim: Option<Claim<'a>>,
    ephemeral: Option<serde::de::IgnoredAny>,
}

/// The kind of an object that a pod refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Kind {
    Secret,
    ConfigMap,
    PersistentVolumeClaim,
    ResourceClaim,
    ServiceAccount,
}

/// The annotation of mirror pods, which a node creates itself: their references give the node no access
/// (<https://kubernetes.io/docs/tasks/configure-pod-container/static-pod/>).
const MIRROR_POD: &str = "kubernetes.io/config.mirror";

impl<'a> Pod<'a> {
    pub(super) fn read(json: &'a [u8]) -> serde_json::Result<Pod<'a>> {
        serde_json::from_slice(json)
    }

    /// The node that the pod is assigned to, or "".
    pub(super) fn node_name(&self) -> &str {
        &self.spec.node_name
    }

    /// The objects that the kubelet needs to run the pod, all in the pod's namespace. Sorted, without duplicates.
    pub(super) fn references(&self) -> Vec<(Kind, Cow<'_, str>)> {
        if self.metadata.annotations.as_ref().is_some_and(|annotations| annotations.contains_key(MIRROR_POD))
        {
            return Vec::new();
        }
        let mut found: Vec<(Kind, Cow<'_, str>)> = Vec::new();
        let mut note = |kind: Kind, name: &'_ Cow<'a, str>| found.push((kind, name.clone()));
        let spec = &self.spec;
        note(Kind::ServiceAccount, &spec.service_account_name);
        for secret in spec.image_pull_secrets.iter().flatten() {
            note(Kind::Secret, &secret.name);
        }
        let containers = [&spec.init_containers, &spec.containers, &spec.ephemeral_containers];
        for container in containers.into_iter().flatten().flatten() {
            for env in container.env_from.iter().flatten() {
                env.secret_ref.iter().for_each(|secret| note(Kind::Secret, &secret.name));
                env.config_map_ref.iter().for_each(|map| note(Kind::ConfigMap, &map.name));
            }
            for source in container.env.iter().flatten().filter_map(|env| env.value_from.as_ref()) {
                source.secret_key_ref.iter().for_each(|secret| note(Kind::Secret, &secret.name));
                source.config_map_key_ref.iter().for_each(|map| note(Kind::ConfigMap, &map.name));
            }
        }
        for volume in spec.volumes.iter().flatten() {
            let drivers = [
                &volume.cephfs,
                &volume.cinder,
                &volume.flex_volume,
                &volume.rbd,
                &volume.scale_io,
                &volume.iscsi,
                &volume.storageos,
            ];
            let of_drivers = drivers.into_iter().flatten().filter_map(|driver| driver.secret_ref.as_ref());
            let of_csi = volume.csi.iter().filter_map(|csi| csi.node_publish_secret_ref.as_ref());
            of_drivers.chain(of_csi).for_each(|secret| note(Kind::Secret, &secret.name));
            let named = volume.secret.iter().chain(&volume.azure_file);
            named.for_each(|secret| note(Kind::Secret, &secret.secret_name));
            volume.config_map.iter().for_each(|map| note(Kind::ConfigMap, &map.name));
            for source in volume.projected.iter().flat_map(|projected| &projected.sources).flatten() {
                source.secret.iter().for_each(|secret| note(Kind::Secret, &secret.name));
                source.config_map.iter().for_each(|map| note(Kind::ConfigMap, &map.name));
            }
            match (&volume.persistent_volume_claim, &volume.ephemeral) {
                (Some(claim), _) => note(Kind::PersistentVolumeClaim, &claim.claim_name),
                (None, Some(_)) => {
                    let claim = format!("{}-{}", self.metadata.name, volume.name);
                    note(Kind::PersistentVolumeClaim, &claim.into());
                }
                (None, None) => {}
            }
        }
        for claim in spec.resource_claims.iter().flatten() {
            let name = match (&claim.resource_claim_name, &claim.resource_claim_template_name) {
                (Some(name), _) => Some(name),
                // The status has the name of a claim that is made from a template.
                (None, Some(_)) => {
                    let mut statuses = self.status.resource_claim_statuses.iter().flatten();
                    let status = statuses.find(|status| status.name == claim.name);
                    status.and_then(|status| status.resource_claim_name.as_ref())
                }
                (None, None) => None,
            };
            name.into_iter().for_each(|name| note(Kind::ResourceClaim, name));
        }
        if let Some(status) = &self.status.extended_resource_claim_status {
            note(Kind::ResourceClaim, &status.resource_claim_name);
        }
        found.retain(|(_, name)| !name.is_empty());
        found.sort_unstable();
        found.dedup();
        found
    }
}

/// The fields of a volume that connect secrets with claims.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct PersistentVolume<'a> {
    #[serde(borrow)]
    spec: PersistentVolumeSpec<'a>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct PersistentVolumeSpec<'a> {
    #[serde(borrow)]
    claim_ref: Option<SecretRef<'a>>,
    #[serde(borrow)]
    azure_file: Option<WithSecretName<'a>>,
    #[serde(borrow)]
    cephfs: Option<WithSecretRef<'a>>,
    #[serde(borrow)]
    cinder: Option<WithSecretRef<'a>>,
    #[serde(borrow)]
    flex_volume: Option<WithSecretRef<'a>>,
    #[serde(borrow)]
    rbd: Option<WithSecretRef<'a>>,
    #[serde(borrow, rename = "scaleIO")]
    scale_io: Option<WithSecretRef<'a>>,
    #[serde(borrow)]
    iscsi: Option<WithSecretRef<'a>>,
    #[serde(borrow)]
    storageos: Option<WithSecretRef<'a>>,
    #[serde(borrow)]
    csi: Option<Csi<'a>>,
}

impl<'a> PersistentVolume<'a> {
    pub(super) fn read(json: &'a [u8]) -> serde_json::Result<PersistentVolume<'a>> {
        serde_json::from_slice(json)
    }

    /// Namespace and name of the claim that the volume is bound to.
    pub(super) fn claim(&self) -> Option<(&str, &str)> {
        self.spec.claim_ref.as_ref().map(|claim| (&*claim.namespace, &*claim.name))
    }

    /// Namespaces and names of the secrets that a kubelet needs for the volume. Sorted, without duplicates.
    pub(super) fn secrets(&self) -> Vec<(&str, &str)> {
        let Some((claim_namespace, _)) = self.claim() else { return Vec::new() };
        let spec = &self.spec;
        // A secret reference without a namespace is in the claim's namespace.
        let drivers = [&spec.cephfs, &spec.flex_volume, &spec.rbd, &spec.scale_io, &spec.iscsi];
        let of_drivers = drivers.into_iter().flatten().filter_map(|driver| driver.secret_ref.as_ref());
        let of_drivers = of_drivers.map(|secret| match &*secret.namespace {
            "" => (claim_namespace, &*secret.name),
            namespace => (namespace, &*secret.name),
        });
        let explicit = [&spec.cinder, &spec.storageos].into_iter().flatten();
        let explicit = explicit.filter_map(|driver| driver.secret_ref.as_ref());
        let of_csi = spec.csi.iter().flat_map(|csi| {
            [&csi.node_publish_secret_ref, &csi.node_stage_secret_ref, &csi.node_expand_secret_ref]
        });
        let explicit = explicit.chain(of_csi.flatten()).map(|secret| (&*secret.namespace, &*secret.name));
        let of_azure = spec.azure_file.iter().map(|secret| match secret.secret_namespace.as_deref() {
            None | Some("") => (claim_namespace, &*secret.secret_name),
            Some(namespace) => (namespace, &*secret.secret_name),
        });
        let mut found: Vec<_> = of_drivers.chain(explicit).chain(of_azure).collect();
        found.retain(|(_, name)| !name.is_empty());
        found.sort_unstable();
        found.dedup();
        found
    }
}

/// An object that names its node in `spec.nodeName`.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct OfNode<'a> {
    #[serde(borrow)]
    spec: OfNodeSpec<'a>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct OfNodeSpec<'a> {
    #[serde(borrow)]
    node_name: Option<Cow<'a, str>>,
}

impl<'a> OfNode<'a> {
    pub(super) fn read(json: &'a [u8]) -> serde_json::Result<OfNode<'a>> {
        serde_json::from_slice(json)
    }

    /// The node, or "".
    pub(super) fn node_name(&self) -> &str {
        self.spec.node_name.as_deref().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    #[test]
    fn a_pod_refers_to_what_its_kubelet_needs() {
        let pod = json!({
            "metadata": {"name": "p", "annotations": {"a": "b"}},
            "spec": {
                "nodeName": "n",
                "serviceAccountName": "robot",
                "imagePullSecrets": [{"name": "pull"}, {"name": ""}, {}],
                "initContainers": [{"envFrom": [{"secretRef": {"name": "from"}}, {"configMapRef": {"name": "from"}}]}],
                "containers": [{"env": [
                    {"name": "PLAIN", "value": "x"},
                    {"name": "S", "valueFrom": {"secretKeyRef": {"name": "env", "key": "k"}}},
                    {"name": "M", "valueFrom": {"configMapKeyRef": {"name": "en\u{76}", "key": "k"}}},
                    {"name": "F", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                ]}],
                "ephemeralContainers": [{"envFrom": [{"secretRef": {"name": "later"}}]}],
                "volumes": [
                    {"name": "a", "secret": {"secretName": "mounted"}},
                    {"name": "b", "configMap": {"name": "mounted"}},
                    {"name": "c", "projected": {"sources": [{"secret": {"name": "joined"}}, {"configMap": {"name": "joined"}},
                        {"serviceAccountToken": {"path": "t"}}]}},
                    {"name": "d", "persistentVolumeClaim": {"claimName": "claim"}},
                    {"name": "e", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
                    {"name": "f", "csi": {"driver": "d", "nodePublishSecretRef": {"name": "publish"}}},
                    {"name": "g", "azureFile": {"secretName": "azure", "shareName": "s"}},
                    {"name": "h", "iscsi": {"secretRef": {"name": "iscsi"}}},
                    {"name": "i", "emptyDir": {}},
                ],
                "resourceClaims": [
                    {"name": "x", "resourceClaimName": "fixed"},
                    {"name": "y", "resourceClaimTemplateName": "template"},
                    {"name": "z", "resourceClaimTemplateName": "not-made"},
                ],
            },
            "status": {
                "resourceClaimStatuses": [{"name": "y", "resourceClaimName": "p-y-1"}, {"name": "z"}],
                "extendedResourceClaimStatus": {"resourceClaimName": "extended"},
            },
        });
        let text = pod.to_string();
        let read = Pod::read(text.as_bytes()).unwrap();
        assert_eq!(read.node_name(), "n");
        let of = |kind: Kind| -> Vec<String> {
            let all = read.references();
            all.into_iter().filter(|(own, _)| *own == kind).map(|(_, name)| name.into_owned()).collect()
        };
        assert_eq!(
            of(Kind::Secret),
            ["azure", "env", "from", "iscsi", "joined", "later", "mounted", "publish", "pull"]
        );
        assert_eq!(of(Kind::ConfigMap), ["env", "from", "joined", "mounted"]);
        assert_eq!(of(Kind::PersistentVolumeClaim), ["claim", "p-e"]);
        assert_eq!(of(Kind::ResourceClaim), ["extended", "fixed", "p-y-1"]);
        assert_eq!(of(Kind::ServiceAccount), ["robot"]);
    }

    #[test]
    fn a_mirror_pod_gives_its_node_nothing() {
        let pod = json!({
            "metadata": {"annotations": {MIRROR_POD: "hash"}},
            "spec": {"nodeName": "n", "imagePullSecrets": [{"name": "pull"}]},
        });
        assert!(Pod::read(pod.to_string().as_bytes()).unwrap().references().is_empty());
    }

    #[test]
    fn a_volume_brings_secrets_to_its_claim() {
        let check = |source: pintle_machinery::Value, expected: &[(&str, &str)]| {
            let mut volume = json!({"spec": {"claimRef": {"namespace": "shop", "name": "claim"}}});
            volume["spec"].as_object_mut().unwrap().extend(source.as_object().unwrap().clone());
            let text = volume.to_string();
            let read = PersistentVolume::read(text.as_bytes()).unwrap();
            assert_eq!(read.claim(), Some(("shop", "claim")));
            assert_eq!(read.secrets(), expected, "{source}");
        };
        check(json!({}), &[]);
        check(json!({"rbd": {"secretRef": {"name": "s"}}}), &[("shop", "s")]);
        check(json!({"rbd": {"secretRef": {"name": "s", "namespace": "other"}}}), &[("other", "s")]);
        check(json!({"cinder": {"secretRef": {"name": "s", "namespace": "other"}}}), &[("other", "s")]);
        check(json!({"azureFile": {"secretName": "s", "shareName": "x"}}), &[("shop", "s")]);
        check(json!({"azureFile": {"secretName": "s", "secretNamespace": "other"}}), &[("other", "s")]);
        check(
            json!({"csi": {
                "controllerPublishSecretRef": {"name": "not-for-nodes", "namespace": "a"},
                "nodeStageSecretRef": {"name": "stage", "namespace": "a"},
                "nodePublishSecretRef": {"name": "publish", "namespace": "a"},
                "nodeExpandSecretRef": {"name": "expand", "namespace": "a"},
            }}),
            &[("a", "expand"), ("a", "publish"), ("a", "stage")],
        );
        let free = PersistentVolume::read(br#"{"spec":{"rbd":{"secretRef":{"name":"s"}}}}"#).unwrap();
        assert!(free.claim().is_none() && free.secrets().is_empty());
    }
}
