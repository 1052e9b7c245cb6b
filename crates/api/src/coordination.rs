//! `coordination.k8s.io`: agreement between processes.

pub mod lease;

use crate::declare::Group;
use pintle_registry::Resource;

pub(crate) const GROUP: Group = Group::new("coordination.k8s.io", "v1", "k8s.io/api/coordination/v1");

/// The resources of the group.
pub fn resources() -> Vec<Resource> {
    vec![lease::resource()]
}
