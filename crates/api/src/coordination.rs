//! `coordination.k8s.io`: leases for coordination between processes.

pub mod lease;
pub mod lease_candidate;

use crate::declare::Group;
use pintle_registry::Resource;

pub(crate) const GROUP: Group = Group::new("coordination.k8s.io", "v1", "k8s.io/api/coordination/v1");

/// The resources of the group.
pub fn resources() -> Vec<Resource> {
    vec![lease::resource()]
}

const V1BETA1: Group = Group::new("coordination.k8s.io", "v1beta1", "k8s.io/api/coordination/v1beta1");
const V1ALPHA2: Group = Group::new("coordination.k8s.io", "v1alpha2", "k8s.io/api/coordination/v1alpha2");

/// The resources in versions that are disabled by default.
pub fn resources_off_by_default() -> Vec<Resource> {
    vec![lease_candidate::resource(), lease_candidate::resource_v1alpha2()]
}
