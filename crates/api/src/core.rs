//! The core group: pods and the objects that they depend on.

pub mod binding;
pub mod component_status;
pub mod config_map;
mod connecting;
mod data;
pub mod endpoints;
pub mod event;
mod group;
pub mod limit_range;
pub mod master_leases;
pub mod namespace;
pub mod node;
pub mod peer_server_leases;
pub mod persistent_volume;
pub mod persistent_volume_claim;
pub mod pod;
pub mod pod_spec;
pub mod pod_template;
pub mod range_allocation;
pub mod replication_controller;
pub mod resource_quota;
pub mod secret;
pub mod service;
pub mod service_account;
#[cfg(test)]
mod testing;
mod volume;

use crate::Config;
use pintle_registry::Resource;

/// The resources of the group.
pub fn resources(config: &Config) -> Vec<Resource> {
    vec![
        binding::resource(),
        component_status::resource(&config.component_statuses),
        config_map::resource(),
        endpoints::resource(),
        event::resource(config.event_ttl),
        limit_range::resource(),
        namespace::resource(),
        node::resource(&config.kubelets),
        persistent_volume_claim::resource(),
        persistent_volume::resource(),
        pod::resource(&config.kubelets, config.pod_log_metrics.as_ref()),
        pod_template::resource(),
        replication_controller::resource(),
        resource_quota::resource(),
        secret::resource(),
        service_account::resource(config.token_issuer.as_ref()),
        service::resource(&config.service_network),
    ]
}
