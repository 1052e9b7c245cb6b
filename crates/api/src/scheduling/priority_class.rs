//! Priority classes.

mod strategy;
mod table;

use super::group::GROUP;
use crate::declare::Declare;
use pintle_registry::Resource;

/// The declaration of the resource.
pub fn resource() -> Resource {
    GROUP
        .cluster("PriorityClass", "priorityclasses")
        .prints(table::columns, table::cells)
        .short_names(["pc"])
        .ruled(strategy::PriorityClassStrategy)
}
