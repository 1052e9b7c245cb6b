//! The API objects that a pod refers to. A node cannot create pods with any: it would get access to the objects.

use crate::plugins::pods::ContainerKind;
use pintle_go_forms::quote;
use pintle_machinery::{Value, ValueExt};

/// Volumes that need no API object.
const PLAIN: [&str; 22] = [
    "awsElasticBlockStore",
    "azureDisk",
    "cephfs",
    "cinder",
    "downwardAPI",
    "emptyDir",
    "fc",
    "flexVolume",
    "flocker",
    "gcePersistentDisk",
    "gitRepo",
    "hostPath",
    "image",
    "iscsi",
    "nfs",
    "photonPersistentDisk",
    "portworxVolume",
    "quobyte",
    "rbd",
    "scaleIO",
    "storageos",
    "vsphereVolume",
];

/// Other volumes, with the objects that they refer to.
const REFERRING: [(&str, &str); 7] = [
    ("configMap", "configmaps (via configmap volumes)"),
    ("secret", "secrets (via secret volumes)"),
    ("csi", "csidrivers (via CSI volumes)"),
    ("glusterfs", "endpoints (via glusterFS volumes)"),
    ("persistentVolumeClaim", "persistentvolumeclaims"),
    ("ephemeral", "persistentvolumeclaims (via ephemeral volumes)"),
    ("azureFile", "secrets (via azureFile volumes)"),
];

/// The sources of projected volumes, with the objects that they refer to.
const PROJECTED: [(&str, &str); 5] = [
    ("configMap", "configmaps (via projected volumes)"),
    ("secret", "secrets (via projected volumes)"),
    ("serviceAccountToken", "serviceaccounts (via projected volumes)"),
    ("clusterTrustBundle", "clustertrustbundles"),
    ("podCertificate", "podcertificates"),
];

/// The first API object that a pod refers to, by its resource; `None` when there is none.
///
/// # Errors
/// When a volume's type is unknown.
pub(super) fn api_reference(pod: &Value) -> Result<Option<&'static str>, String> {
    let direct = if !pod.str_at("spec.serviceAccountName").is_empty() {
        Some("serviceaccounts")
    } else if crate::plugins::pods::references_secrets(pod) {
        Some("secrets")
    } else if references_config_maps(pod) {
        Some("configmaps")
    } else if !pod.items_at("spec.resourceClaims").is_empty() {
        Some("resourceclaims")
    } else {
        None
    };
    if direct.is_some() {
        return Ok(direct);
    }
    for volume in pod.items_at("spec.volumes") {
        if let Some(referenced) = of_volume(volume)? {
            return Ok(Some(referenced));
        }
    }
    Ok(None)
}

fn of_volume(volume: &Value) -> Result<Option<&'static str>, String> {
    let has = |name: &str| volume.field(name).is_some();
    if PLAIN.iter().any(|name| has(name)) {
        return Ok(None);
    }
    if let Some((_, referenced)) = REFERRING.iter().find(|(name, _)| has(name)) {
        return Ok(Some(referenced));
    }
    let name = volume.str_at("name");
    if !has("projected") {
        return Err(format!("unknown volume type for volume  {}", quote(name)));
    }
    for source in volume.items_at("projected.sources") {
        match PROJECTED.iter().find(|(name, _)| source.field(name).is_some()) {
            Some((_, referenced)) => return Ok(Some(referenced)),
            None if source.field("downwardAPI").is_some() => {}
            None => return Err(format!("unknown source for projected volume {}", quote(name))),
        }
    }
    Ok(None)
}

fn references_config_maps(pod: &Value) -> bool {
    let mut containers = ContainerKind::ALL.into_iter().flat_map(|kind| pod.items_at(kind.path()));
    let in_volume = |volume: &Value| {
        volume.field("configMap").is_some()
            || volume.items_at("projected.sources").iter().any(|source| source.field("configMap").is_some())
    };
    containers.any(|container| {
        container.items_at("env").iter().any(|variable| variable.at("valueFrom.configMapKeyRef").is_some())
            || container.items_at("envFrom").iter().any(|source| source.field("configMapRef").is_some())
    }) || pod.items_at("spec.volumes").iter().any(in_volume)
}
