//! Persistent volumes.

mod source;
pub(crate) mod spec;
mod strategy;
mod table;

use super::group::GROUP;
use crate::declare::Declare;
use pintle_registry::Resource;

/// The declaration of the resource.
pub fn resource() -> Resource {
    GROUP
        .cluster("PersistentVolume", "persistentvolumes")
        .prints(table::columns, table::cells)
        .short_names(["pv"])
        .ruled(strategy::VolumeStrategy)
        .status(strategy::StatusStrategy)
}
