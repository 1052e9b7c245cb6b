//! Snapshots of a workload's template.

use super::{
    GROUP,
    controller_revision_table::{cells, columns},
};
use crate::declare::Declare;
use pintle_registry::Resource;

/// The declaration.
pub fn resource() -> Resource {
    GROUP.namespaced("ControllerRevision", "controllerrevisions").prints(columns, cells)
}
