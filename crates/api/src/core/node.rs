//! Nodes.

mod kubelet;
mod proxy;
mod strategy;
mod table;

pub use kubelet::KubeletAddresses;

use super::group::GROUP;
use crate::declare::{Declare, boolean_field};
use pintle_registry::Resource;

/// The declaration of the resource.
pub fn resource(kubelets: &KubeletAddresses) -> Resource {
    GROUP
        .cluster("Node", "nodes")
        .short_names(["no"])
        .proxied("NodeProxyOptions", proxy::NodeProxy(kubelets.clone()))
        .ruled(strategy::NodeStrategy)
        .status(strategy::StatusStrategy)
        .prints(table::columns, table::cells)
        .selectable([boolean_field("spec.unschedulable")])
        .stored_at("minions")
}
