//! Persistent volume claims.

mod strategy;
mod table;

use super::group::GROUP;
use crate::declare::Declare;
use pintle_registry::Resource;

/// The declaration of the resource.
pub fn resource() -> Resource {
    GROUP
        .namespaced("PersistentVolumeClaim", "persistentvolumeclaims")
        .prints(table::columns, table::cells)
        .short_names(["pvc"])
        .ruled(strategy::ClaimStrategy)
        .status(strategy::StatusStrategy)
}
