//! `node.k8s.io`: container runtimes of nodes.

mod group;
pub mod runtime_class;

use pintle_registry::Resource;

/// The resources of the group.
pub fn resources() -> Vec<Resource> {
    vec![runtime_class::resource()]
}
