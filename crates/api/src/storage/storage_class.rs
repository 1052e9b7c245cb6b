//! Storage classes.

mod strategy;
mod table;

use super::group::GROUP;
use crate::declare::Declare;
use pintle_registry::Resource;

/// The declaration of the resource.
pub fn resource() -> Resource {
    GROUP
        .cluster("StorageClass", "storageclasses")
        .prints(table::columns, table::cells)
        .ruled(strategy::StorageClassStrategy)
        .short_names(["sc"])
}
