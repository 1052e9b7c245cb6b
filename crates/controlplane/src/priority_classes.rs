//! The priority classes that every cluster has
//! (<https://kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption/#priorityclass>).
//!
//! They are created whenever a server starts. A client that deletes all classes has none until then.

use crate::objects::{create_if_missing, unless_off};
use pintle_machinery::{GroupResource, Status, json};
use pintle_registry::Registry;

const NODE_CRITICAL: &str = "Used for system critical pods that must not be moved from their current node.";
const CLUSTER_CRITICAL: &str = "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.";

/// Creates the missing priority classes. A disabled resource is ignored.
///
/// # Errors
/// The first failure. A class that was created stays, and a second call creates the other.
pub async fn bootstrap_priority_classes(registry: &dyn Registry) -> Result<(), Status> {
    unless_off(reconcile(registry)).await
}

async fn reconcile(registry: &dyn Registry) -> Result<(), Status> {
    tokio::try_join!(
        ensure(registry, "system-node-critical", 2_000_001_000, NODE_CRITICAL),
        ensure(registry, "system-cluster-critical", 2_000_000_000, CLUSTER_CRITICAL),
    )?;
    Ok(())
}

async fn ensure(registry: &dyn Registry, name: &str, value: i64, description: &str) -> Result<(), Status> {
    let object = json!({
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        "description": description,
        "preemptionPolicy": "PreemptLowerPriority",
    });
    let resource = GroupResource::new("scheduling.k8s.io", "priorityclasses");
    create_if_missing(registry, &resource, "", object).await?;
    Ok(())
}
