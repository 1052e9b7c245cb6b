//! `flowcontrol.apiserver.k8s.io`: flow schemas and priority levels.

mod conditions;
pub mod flow_schema;
pub mod priority_level_configuration;

use crate::declare::Group;
use pintle_registry::Resource;

pub(crate) const GROUP: Group = Group::new("flowcontrol.apiserver.k8s.io", "v1", "k8s.io/api/flowcontrol/v1");

/// The resources of the group.
pub fn resources() -> Vec<Resource> {
    vec![flow_schema::resource(), priority_level_configuration::resource()]
}
