//! Endpoint slices: subsets of the addresses behind a service.

mod strategy;

use super::{
    GROUP,
    endpoint_slice_table::{cells, columns},
};
use crate::declare::Declare;
use pintle_registry::Resource;

/// The declaration of the resource.
pub fn resource() -> Resource {
    GROUP
        .namespaced("EndpointSlice", "endpointslices")
        .prints(columns, cells)
        .ruled(strategy::EndpointSliceStrategy)
}
