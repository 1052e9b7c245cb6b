//! Snapshots of a workload's template.

mod strategy;
mod table;

use super::group::GROUP;
use crate::declare::Declare;
use pintle_registry::Resource;

/// The declaration of the resource.
pub fn resource() -> Resource {
    GROUP
        .namespaced("ControllerRevision", "controllerrevisions")
        .ruled(strategy::ControllerRevisionStrategy)
        .prints(table::columns, table::cells)
}
