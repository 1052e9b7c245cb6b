//! What the plugins that are about pods share.

use crate::{AdmissionRequest, Operation};
use pintle_machinery::{GroupResource, Status, Value, ValueExt, meta::ObjectMeta, text::quote};
use std::sync::Arc;

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

/// Whether the request changes the `spec` of a pod that is bound to a node. Only such a change raises the generation.
pub(super) fn changes_bound_pod(request: &AdmissionRequest<'_>) -> bool {
    let generation = |pod: &Value| pod.i64_at("metadata.generation");
    request.operation == Operation::Update
        && !request.object.str_at("spec.nodeName").is_empty()
        && request.old_object.is_some_and(|old| generation(old) != generation(&request.object))
}

/// The node that the pod of the request is bound to.
///
/// # Errors
/// 403 when there is no such node.
pub(super) async fn node_of(request: &AdmissionRequest<'_>) -> Result<Arc<Value>, Status> {
    let name = request.object.str_at("spec.nodeName");
    match request.find(&GroupResource::new("", "nodes"), "", name).await {
        Ok(Some(node)) => Ok(node),
        Ok(None) => Err(request.forbidden(format!("node {} not found", quote(name)))),
        Err(status) => {
            Err(request.forbidden(format!("failed to get node {}: {}", quote(name), status.message)))
        }
    }
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
