//! Snapshots of a workload's template.

use super::GROUP;
use pintle_registry::Resource;

/// The declaration.
pub fn resource() -> Resource {
    GROUP.namespaced("ControllerRevision", "controllerrevisions")
}
