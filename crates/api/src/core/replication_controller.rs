//! `ReplicationController`: the predecessor of replica sets.

mod strategy;

use super::{
    GROUP,
    replication_controller_table::{cells, columns},
};
use crate::declare::{Declare, integer_field};
use pintle_registry::Resource;

/// The declaration of the resource.
pub fn resource() -> Resource {
    GROUP
        .namespaced("ReplicationController", "replicationcontrollers")
        .prints(columns, cells)
        .short_names(["rc"])
        .categories(["all"])
        .scale()
        .ruled(strategy::ReplicationControllerStrategy)
        .status(strategy::StatusStrategy)
        .selectable([integer_field("status.replicas")])
        .stored_at("controllers")
}
