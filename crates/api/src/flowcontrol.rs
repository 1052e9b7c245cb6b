//! `flowcontrol.apiserver.k8s.io`: flow schemas and priority levels.

mod conditions;
pub mod flow_schema;
mod group;
pub mod priority_level_configuration;

use pintle_registry::Resource;

/// The resources of the group.
pub fn resources() -> Vec<Resource> {
    vec![flow_schema::resource(), priority_level_configuration::resource()]
}
