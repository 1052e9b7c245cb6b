//! `scheduling.k8s.io`: priorities of pods.

mod group;
pub mod priority_class;

use pintle_registry::Resource;

/// The resources of the group.
pub fn resources() -> Vec<Resource> {
    vec![priority_class::resource()]
}
