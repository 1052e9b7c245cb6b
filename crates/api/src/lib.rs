//! The built-in kinds: declarations, defaults, validation, strategies, columns.
//!
//! One folder an API group, one file a kind; a kind's file has `resource()`, its declaration. Custom resource definitions
//! and API services are declared by the servers that own them.

mod declare;
pub mod enablement;
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
use pintle_service_account::TokenIssuer;
use std::{sync::Arc, time::Duration};

/// What the kinds have to know of the cluster.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where services get their addresses and ports from.
    pub service_network: Arc<core::service::ServiceNetwork>,
    /// For how long events are kept; zero is for ever.
    pub event_ttl: Duration,
    /// Who signs tokens for service accounts; `None` is nobody.
    pub token_issuer: Option<Arc<TokenIssuer>>,
    /// Who tells whose tokens are.
    pub token_reviewer: Arc<authentication::token_review::TokenReviewer>,
    /// What roles and bindings say: nobody may give what they do not have.
    pub rbac: Arc<pintle_rbac::Rbac>,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            service_network: Arc::default(),
            event_ttl: Duration::from_secs(60 * 60),
            token_issuer: Some(Arc::default()),
            token_reviewer: Arc::default(),
            rbac: Arc::default(),
        }
    }
}

/// What the server stores for itself, in no group that is served: node port allocations.
pub fn internal_resources() -> Vec<Resource> {
    vec![core::range_allocation::resource()]
}

/// All resources of the built-in groups, in every version that is served by default, in the order of the groups' names.
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
    let declared: Vec<Resource> = resources.iter().cloned().chain(resources_off_by_default()).collect();
    for resource in &mut resources {
        if resource.is_stored() && resource.conversion.is_none() {
            resource.stored_versions = stored_versions::of(resource, &declared);
        }
    }
    resources
}

/// The resources in versions that are served only when they are switched on. Most are other versions of what [`resources`]
/// has, stored in the same place.
pub fn resources_off_by_default() -> Vec<Resource> {
    let groups = [
        admissionregistration::resources_off_by_default(),
        coordination::resources_off_by_default(),
        networking::resources_off_by_default(),
        resource::resources_off_by_default(),
        storage::resources_off_by_default(),
    ];
    groups.into_iter().flatten().collect()
}
