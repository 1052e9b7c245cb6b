//! `scheduling.k8s.io`: priorities of pods, and groups of pods that are scheduled together.

mod group;
pub mod pod_group;
mod pod_group_fields;
pub mod priority_class;
pub mod workload;

use pintle_registry::Resource;

/// The resources of the group.
pub fn resources() -> Vec<Resource> {
    vec![priority_class::resource()]
}

/// The resources in versions that are disabled by default.
pub fn resources_off_by_default() -> Vec<Resource> {
    vec![pod_group::resource(), workload::resource()]
}
