//! Functions on pods that several plugins share.

use crate::{AdmissionRequest, Operation};
use pintle_go_forms::quote;
use pintle_machinery::{GroupResource, Status, Value, ValueExt, meta::ObjectMeta};
use std::sync::Arc;

const MIRROR: &str = "kubernetes.io/config.mirror";

/// The lists of containers in a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ContainerKind {
    /// Init containers, which run before the regular ones.
    Init,
    /// The regular containers.
    Regular,
    /// Ephemeral containers, added for debugging.
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

/// Whether the pod mirrors a static pod of a node.
pub(super) fn is_mirror(pod: &Value) -> bool {
    pod.annotation(MIRROR).is_some()
}

/// Whether the request changes the `spec` of a pod that is bound to a node. Only such a change increments the
/// generation.
pub(super) fn changes_bound_pod(request: &AdmissionRequest<'_>) -> bool {
    let generation = |pod: &Value| pod.i64_at("metadata.generation");
    request.operation == Operation::Update
        && !request.object.str_at("spec.nodeName").is_empty()
        && request.old_object.is_some_and(|old| generation(old) != generation(&request.object))
}

/// Returns the node that the pod of the request is bound to.
///
/// # Errors
/// 403 when the node does not exist.
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

/// Whether the pod references a secret.
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

/// Appends an item to a list, which is created when absent.
pub(super) fn push(object: &mut Value, path: &str, item: Value) {
    let mut items = match object.remove_at(path) {
        Some(Value::Array(items)) => items,
        _ => Vec::new(),
    };
    items.push(item);
    object.set(path, items);
}
