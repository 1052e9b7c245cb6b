//! `scheduling.k8s.io`: priorities of pods.

pub mod priority_class;

use crate::declare::Group;
use pintle_registry::Resource;

pub(crate) const GROUP: Group = Group::new("scheduling.k8s.io", "v1", "k8s.io/api/scheduling/v1");

/// The resources of the group.
pub fn resources() -> Vec<Resource> {
    vec![priority_class::resource()]
}
