//! The priority classes that every cluster has
//! (<https://kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption/#priorityclass>).

use crate::objects::create_if_missing;
use pintle_machinery::{GroupResource, Status};
use pintle_registry::Registry;
use serde_json::json;

const CLASSES: [(&str, i64, &str); 2] = [
    (
        "system-node-critical",
        2_000_001_000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
    (
        "system-cluster-critical",
        2_000_000_000,
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
    ),
];

pub(crate) async fn reconcile(registry: &dyn Registry) -> Result<(), Status> {
    let resource = GroupResource::new("scheduling.k8s.io", "priorityclasses");
    for (name, value, description) in CLASSES {
        let object = json!({
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
            "description": description,
            "preemptionPolicy": "PreemptLowerPriority",
        });
        create_if_missing(registry, &resource, "", object).await?;
    }
    Ok(())
}
