//! Some of the addresses behind a service.

use super::GROUP;
use pintle_registry::Resource;

/// The declaration.
pub fn resource() -> Resource {
    GROUP.namespaced("EndpointSlice", "endpointslices")
}
