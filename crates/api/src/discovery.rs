//! `discovery.k8s.io`: the endpoints of services.

pub mod endpoint_slice;
mod group;

use pintle_registry::Resource;

/// The resources of the group.
pub fn resources() -> Vec<Resource> {
    vec![endpoint_slice::resource()]
}
