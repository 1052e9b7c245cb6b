//! The built-in kinds: declarations, defaults, validation, strategies, columns.
//!
//! One folder an API group, one file a kind; a kind's file has `resource()`, its declaration. Custom resource definitions
//! and API services are declared by the servers that own them.

mod declare;
mod field_checks;
mod ip_rules;
mod plain;
mod printing;
mod resource_list;
mod rules;
mod stored_versions;
mod workload;

pub mod admissionregistration;
pub mod apps;
pub mod authentication;
pub mod authorization;
pub mod autoscaling;
pub mod batch;
pub mod certificates;
pub mod coordination;
pub mod core;
pub mod discovery;
pub mod events;
pub mod flowcontrol;
pub mod networking;
pub mod node;
pub mod policy;
pub mod rbac;
pub mod resource;
pub mod scheduling;
pub mod storage;

use pintle_registry::Resource;
use std::sync::Arc;

/// What the kinds have to know of the cluster.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// Where services get their addresses and ports from.
    pub service_network: Arc<core::service::ServiceNetwork>,
}

/// What the server stores for itself, in no group that is served: node port allocations.
pub fn internal_resources() -> Vec<Resource> {
    vec![core::range_allocation::resource()]
}

/// All resources of the built-in groups, in every version that is served, in the order of the groups' names.
pub fn resources(config: &Config) -> Vec<Resource> {
    let groups = [
        core::resources(&config.service_network),
        admissionregistration::resources(),
        apps::resources(),
        authentication::resources(),
        authorization::resources(),
        autoscaling::resources(),
        batch::resources(),
        certificates::resources(),
        coordination::resources(),
        discovery::resources(),
        events::resources(),
        flowcontrol::resources(),
        networking::resources(),
        node::resources(),
        policy::resources(),
        rbac::resources(),
        resource::resources(),
        scheduling::resources(),
        storage::resources(),
    ];
    let mut resources: Vec<Resource> = groups.into_iter().flatten().collect();
    for resource in &mut resources {
        if resource.is_stored() && resource.conversion.is_none() {
            resource.stored_versions = stored_versions::of(resource);
        }
    }
    resources
}
