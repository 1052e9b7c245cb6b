//! The namespaces that every cluster has
//! (<https://kubernetes.io/docs/concepts/overview/working-with-objects/namespaces/#initial-namespaces>).

use crate::controller::{Controller, OBJECTS_INTERVAL};
use crate::objects::{core, create_if_missing};
use pintle_machinery::{Status, json};
use pintle_registry::Registry;
use std::time::Duration;

pub(crate) const KUBE_SYSTEM: &str = "kube-system";

/// Creates the namespaces.
pub struct SystemNamespaces;

impl Controller for SystemNamespaces {
    const NAME: &'static str = "system namespaces";
    const INTERVAL: Duration = OBJECTS_INTERVAL;

    async fn reconcile(&self, registry: &dyn Registry) -> Result<(), Status> {
        reconcile(registry).await
    }
}

async fn reconcile(registry: &dyn Registry) -> Result<(), Status> {
    tokio::try_join!(
        ensure(registry, "default"),
        ensure(registry, KUBE_SYSTEM),
        ensure(registry, "kube-public"),
        ensure(registry, "kube-node-lease"),
    )?;
    Ok(())
}

async fn ensure(registry: &dyn Registry, name: &str) -> Result<(), Status> {
    let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    create_if_missing(registry, &core("namespaces"), "", object).await?;
    Ok(())
}
