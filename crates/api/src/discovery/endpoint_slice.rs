//! Endpoint slices: subsets of the addresses behind a service.

mod strategy;
mod table;

use super::group::GROUP;
use crate::declare::Declare;
use pintle_registry::Resource;

/// The declaration of the resource.
pub fn resource() -> Resource {
    GROUP
        .namespaced("EndpointSlice", "endpointslices")
        .prints(table::columns, table::cells)
        .ruled(strategy::EndpointSliceStrategy)
}
