//! Config maps.

mod strategy;
mod table;

use super::group::GROUP;
use crate::declare::Declare;
use pintle_registry::Resource;

/// The declaration of the resource.
pub fn resource() -> Resource {
    GROUP
        .namespaced("ConfigMap", "configmaps")
        .short_names(["cm"])
        .prints(table::columns, table::cells)
        .ruled(strategy::ConfigMapStrategy)
}
