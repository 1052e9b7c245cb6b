//! `discovery.k8s.io`: the endpoints of services.

pub mod endpoint_slice;
pub(crate) mod endpoint_slice_table;

use crate::declare::Group;
use pintle_registry::Resource;

pub(crate) const GROUP: Group = Group::new("discovery.k8s.io", "v1", "k8s.io/api/discovery/v1");

/// The resources of the group.
pub fn resources() -> Vec<Resource> {
    vec![endpoint_slice::resource()]
}
