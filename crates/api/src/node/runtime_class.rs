//! Runtime classes: the container runtimes of nodes.

mod strategy;
mod table;

use super::group::GROUP;
use crate::declare::Declare;
use pintle_registry::Resource;

/// The declaration of the resource.
pub fn resource() -> Resource {
    GROUP
        .cluster("RuntimeClass", "runtimeclasses")
        .prints(table::columns, table::cells)
        .ruled(strategy::RuntimeClassStrategy)
}
