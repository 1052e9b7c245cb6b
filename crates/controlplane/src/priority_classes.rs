//! The priority classes that every cluster has
//! (<https://kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption/#priorityclass>).

use crate::controller::{Controller, OBJECTS_INTERVAL};
use crate::objects::create_if_missing;
use pintle_machinery::{GroupResource, Status, json};
use pintle_registry::Registry;
use std::time::Duration;

const NODE_CRITICAL: &str = "Used for system critical pods that must not be moved from their current node.";
const CLUSTER_CRITICAL: &str = "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.";

/// Creates the priority classes.
pub struct PriorityClasses;

impl Controller for PriorityClasses {
    const NAME: &'static str = "priority classes";
    const INTERVAL: Duration = OBJECTS_INTERVAL;

    async fn reconcile(&self, registry: &dyn Registry) -> Result<(), Status> {
        reconcile(registry).await
    }
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
