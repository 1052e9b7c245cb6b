//! `autoscaling`: scales workloads with their load.

mod group;
pub mod horizontal_pod_autoscaler;

use pintle_registry::Resource;

/// The resources of the group.
pub fn resources() -> Vec<Resource> {
    vec![horizontal_pod_autoscaler::resource_v1(), horizontal_pod_autoscaler::resource_v2()]
}
