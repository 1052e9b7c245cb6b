//! `ResourceQuota`: limits of the total use of resources in a namespace.

mod strategy;
mod table;

use super::group::GROUP;
use crate::declare::Declare;
use pintle_registry::Resource;

/// The declaration of the resource.
pub fn resource() -> Resource {
    GROUP
        .namespaced("ResourceQuota", "resourcequotas")
        .prints(table::columns, table::cells)
        .ruled(strategy::ResourceQuotaStrategy)
        .short_names(["quota"])
        .status(strategy::StatusStrategy)
}
