//! `ReplicationController`: the predecessor of replica sets.

mod strategy;
mod table;

use super::group::GROUP;
use crate::declare::{Declare, integer_field};
use pintle_registry::Resource;

/// The declaration of the resource.
pub fn resource() -> Resource {
    GROUP
        .namespaced("ReplicationController", "replicationcontrollers")
        .prints(table::columns, table::cells)
        .short_names(["rc"])
        .categories(["all"])
        .scale()
        .ruled(strategy::ReplicationControllerStrategy)
        .status(strategy::StatusStrategy)
        .selectable([integer_field("status.replicas")])
        .stored_at("controllers")
}
