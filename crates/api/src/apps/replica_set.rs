//! Replica sets: replicas of one template.

pub(crate) mod strategy;
mod table;

use super::group::GROUP;
use crate::declare::Declare;
use crate::workload::{WorkloadStatusStrategy, WorkloadStrategy};
use pintle_registry::Resource;

/// The declaration of the resource.
pub fn resource() -> Resource {
    GROUP
        .namespaced("ReplicaSet", "replicasets")
        .short_names(["rs"])
        .categories(["all"])
        .plain_integers(&["spec.replicas"])
        .scale()
        .prints(table::columns, table::cells)
        .ruled(WorkloadStrategy(strategy::ReplicaSet))
        .status(WorkloadStatusStrategy(strategy::ReplicaSet))
}
