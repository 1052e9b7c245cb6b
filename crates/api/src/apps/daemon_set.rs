//! Daemon sets: a pod on every selected node.

mod strategy;

use super::{
    GROUP,
    daemon_set_table::{cells, columns},
};
use crate::declare::Declare;
use pintle_registry::Resource;

/// The declaration of the resource.
pub fn resource() -> Resource {
    GROUP
        .namespaced("DaemonSet", "daemonsets")
        .prints(columns, cells)
        .short_names(["ds"])
        .categories(["all"])
        .integer_annotations(&["deprecated.daemonset.template.generation"])
        .ruled(strategy::DaemonSetStrategy)
        .status(strategy::StatusStrategy)
}
