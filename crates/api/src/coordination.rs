//! `coordination.k8s.io`: leases for coordination between processes.

mod group;
pub mod lease;
pub mod lease_candidate;

use pintle_registry::Resource;

/// The resources of the group.
pub fn resources() -> Vec<Resource> {
    vec![lease::resource()]
}

/// The resources in versions that are disabled by default.
pub fn resources_off_by_default() -> Vec<Resource> {
    vec![lease_candidate::resource(), lease_candidate::resource_v1alpha2()]
}
