//! Nodes.

use super::GROUP;
use crate::declare::{Declare, PROXY_VERBS, boolean_field};
use pintle_registry::{DefaultStrategy, Resource};

/// The declaration.
pub fn resource() -> Resource {
    GROUP
        .cluster("Node", "nodes")
        .short_names(["no"])
        .connect("proxy", "NodeProxyOptions", PROXY_VERBS)
        .status(DefaultStrategy)
        .selectable([boolean_field("spec.unschedulable")])
        .stored_at("minions")
}
