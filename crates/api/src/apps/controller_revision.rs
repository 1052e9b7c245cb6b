//! Snapshots of a workload's template.

mod strategy;

use super::{
    GROUP,
    controller_revision_table::{cells, columns},
};
use crate::declare::Declare;
use pintle_registry::Resource;

/// The declaration of the resource.
pub fn resource() -> Resource {
    GROUP
        .namespaced("ControllerRevision", "controllerrevisions")
        .ruled(strategy::ControllerRevisionStrategy)
        .prints(columns, cells)
}
