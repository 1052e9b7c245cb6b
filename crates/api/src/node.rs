//! `node.k8s.io`: container runtimes of nodes.

pub mod runtime_class;

use crate::declare::Group;
use pintle_registry::Resource;

pub(crate) const GROUP: Group = Group::new("node.k8s.io", "v1", "k8s.io/api/node/v1");

/// The resources of the group.
pub fn resources() -> Vec<Resource> {
    vec![runtime_class::resource()]
}
