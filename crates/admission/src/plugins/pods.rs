//! What the plugins that are about pods share.

use pintle_machinery::{Value, ValueExt, meta::ObjectMeta};

const MIRROR: &str = "kubernetes.io/config.mirror";

/// Which containers of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ContainerKind {
    /// They run before the others.
    Init,
    /// They are what the pod is for.
    Regular,
    /// They were added to look at it.
    Ephemeral,
}

impl ContainerKind {
    pub(super) const ALL: [ContainerKind; 3] =
        [ContainerKind::Init, ContainerKind::Regular, ContainerKind::Ephemeral];

    pub(super) fn path(self) -> &'static str {
        match self {
            ContainerKind::Init => "spec.initContainers",
            ContainerKind::Regular => "spec.containers",
            ContainerKind::Ephemeral => "spec.ephemeralContainers",
        }
    }

    pub(super) fn noun(self) -> &'static str {
        match self {
            ContainerKind::Init => "init container",
            ContainerKind::Regular => "container",
            ContainerKind::Ephemeral => "ephemeral container",
        }
    }
}

/// Whether the pod stands for one that a node runs by itself.
pub(super) fn is_mirror(pod: &Value) -> bool {
    pod.annotation(MIRROR).is_some()
}

/// Whether the pod needs any secret.
pub(super) fn references_secrets(pod: &Value) -> bool {
    let mut containers = ContainerKind::ALL.into_iter().flat_map(|kind| pod.items_at(kind.path()));
    let in_containers = containers.any(|container| {
        container.items_at("env").iter().any(|variable| variable.at("valueFrom.secretKeyRef").is_some())
            || container.items_at("envFrom").iter().any(|source| source.at("secretRef").is_some())
    });
    in_containers
        || !pod.items_at("spec.imagePullSecrets").is_empty()
        || pod.items_at("spec.volumes").iter().any(volume_references_secrets)
}

fn volume_references_secrets(volume: &Value) -> bool {
    const REFERENCES: [&str; 10] = [
        "azureFile.secretName",
        "cephfs.secretRef",
        "cinder.secretRef",
        "csi.nodePublishSecretRef",
        "flexVolume.secretRef",
        "iscsi.secretRef",
        "rbd.secretRef",
        "scaleIO.secretRef",
        "secret",
        "storageos.secretRef",
    ];
    REFERENCES.iter().any(|path| volume.at(path).is_some())
        || volume.items_at("projected.sources").iter().any(|source| source.at("secret").is_some())
}

/// Adds an item to a list, made when it is absent.
pub(super) fn push(object: &mut Value, path: &str, item: Value) {
    let mut items = match object.remove_at(path) {
        Some(Value::Array(items)) => items,
        _ => Vec::new(),
    };
    items.push(item);
    object.set(path, items);
}
