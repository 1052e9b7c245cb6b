//! Nodes.

mod strategy;
mod table;

use super::group::GROUP;
use crate::declare::{Declare, PROXY_VERBS, boolean_field};
use pintle_registry::Resource;

/// The declaration of the resource.
pub fn resource() -> Resource {
    GROUP
        .cluster("Node", "nodes")
        .short_names(["no"])
        .connect("proxy", "NodeProxyOptions", PROXY_VERBS)
        .ruled(strategy::NodeStrategy)
        .status(strategy::StatusStrategy)
        .prints(table::columns, table::cells)
        .selectable([boolean_field("spec.unschedulable")])
        .stored_at("minions")
}
