//! `ReplicationController`: the predecessor of replica sets.

mod strategy;
mod table;

use super::group::GROUP;
use crate::declare::{Declare, integer_field};
use crate::workload::{WorkloadStatusStrategy, WorkloadStrategy};
use pintle_registry::Resource;

/// The declaration of the resource.
pub fn resource() -> Resource {
    GROUP
        .namespaced("ReplicationController", "replicationcontrollers")
        .prints(table::columns, table::cells)
        .short_names(["rc"])
        .categories(["all"])
        .scale()
        .ruled(WorkloadStrategy(strategy::ReplicationController))
        .status(WorkloadStatusStrategy(strategy::ReplicationController))
        .selectable([integer_field("status.replicas")])
        .stored_at("controllers")
}
