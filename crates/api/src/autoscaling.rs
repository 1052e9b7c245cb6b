//! `autoscaling`: scales workloads with their load.

pub mod horizontal_pod_autoscaler;
pub(crate) mod horizontal_pod_autoscaler_table;

use crate::declare::Group;
use pintle_registry::Resource;

pub(crate) const V1: Group = Group::new("autoscaling", "v1", "k8s.io/api/autoscaling/v1");
pub(crate) const V2: Group = Group::new("autoscaling", "v2", "k8s.io/api/autoscaling/v2");

/// The resources of the group.
pub fn resources() -> Vec<Resource> {
    vec![horizontal_pod_autoscaler::resource_v1(), horizontal_pod_autoscaler::resource_v2()]
}
