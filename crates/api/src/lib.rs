//! The built-in kinds: declarations, defaults, validation, strategies, columns.
//!
//! Each API group has a folder and each kind a file, with its declaration in `resource()`. Custom resource definitions
//! and API services are declared by the servers that own them.

mod config;
mod declarative;
mod declare;
mod embedded_json;
pub mod enablement;
mod field_checks;
mod gated_fields;
mod ip_rules;
mod plain;
mod printing;
mod resource_list;
mod rules;
mod stored_versions;
mod workload;

pub mod admissionregistration;
pub mod apiserverinternal;
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
pub mod storagemigration;

pub use config::Config;

use pintle_registry::Resource;

/// The server's internal resources, in no served group: node port allocations.
pub fn internal_resources() -> Vec<Resource> {
    vec![core::range_allocation::resource()]
}

/// All resources of the built-in groups, in every version that is served by default, sorted by group.
pub fn resources(config: &Config) -> Vec<Resource> {
    let groups = [
        core::resources(config),
        admissionregistration::resources(),
        apps::resources(),
        authentication::resources(config),
        authorization::resources(),
        autoscaling::resources(),
        batch::resources(),
        certificates::resources(),
        coordination::resources(),
        discovery::resources(),
        events::resources(config.event_ttl),
        flowcontrol::resources(),
        networking::resources(),
        node::resources(),
        policy::resources(),
        rbac::resources(&config.rbac),
        resource::resources(),
        scheduling::resources(),
        storage::resources(),
    ];
    let mut resources: Vec<Resource> = groups.into_iter().flatten().collect();
    let declared: Vec<Resource> = resources.iter().cloned().chain(declared_off_by_default()).collect();
    set_stored_versions(&mut resources, &declared);
    resources
}

/// The resources in versions that are disabled by default. Most are other versions of those in [`resources`], stored in
/// the same place.
pub fn resources_off_by_default() -> Vec<Resource> {
    let mut resources = declared_off_by_default();
    let declared = resources.clone();
    set_stored_versions(&mut resources, &declared);
    resources
}

fn declared_off_by_default() -> Vec<Resource> {
    let groups = [
        admissionregistration::resources_off_by_default(),
        apiserverinternal::resources_off_by_default(),
        certificates::resources_off_by_default(),
        coordination::resources_off_by_default(),
        networking::resources_off_by_default(),
        resource::resources_off_by_default(),
        scheduling::resources_off_by_default(),
        storage::resources_off_by_default(),
        storagemigration::resources_off_by_default(),
    ];
    groups.into_iter().flatten().collect()
}

/// Sets the versions in which stored objects may be found, on the declarations of the storage versions.
fn set_stored_versions(resources: &mut [Resource], declared: &[Resource]) {
    for resource in resources {
        if resource.is_stored() && resource.conversion.is_none() {
            resource.stored_versions = stored_versions::of(resource, declared);
        }
    }
}
