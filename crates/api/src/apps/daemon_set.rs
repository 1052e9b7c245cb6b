//! Daemon sets: a pod on every selected node.

mod strategy;
mod table;

use super::group::GROUP;
use crate::declare::Declare;
use crate::workload::{WorkloadStatusStrategy, WorkloadStrategy};
use pintle_registry::Resource;

/// The declaration of the resource.
pub fn resource() -> Resource {
    GROUP
        .namespaced("DaemonSet", "daemonsets")
        .prints(table::columns, table::cells)
        .short_names(["ds"])
        .categories(["all"])
        .integer_annotations(&["deprecated.daemonset.template.generation"])
        .ruled(WorkloadStrategy(strategy::DaemonSet))
        .status(WorkloadStatusStrategy(strategy::DaemonSet))
}
