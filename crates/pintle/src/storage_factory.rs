//! Configures the storage of each resource: its engine, media type and watch cache.

use crate::{
    Options,
    engines::Engines,
    options::storage::{EtcdServersOverride, sorted},
};
use pintle_apiserver::registry::{StorageFactory, Stores};
use pintle_feature_gates::{FeatureGates, Gate};
use std::sync::Arc;

/// Groups of the other servers of the chain: overrides apply to the built-in groups only.
const OWN_SERVERS: [&str; 2] = ["apiextensions.k8s.io", "apiregistration.k8s.io"];

/// Warns of overrides without effect: of resources that are not stored, or stored under another name.
pub(crate) fn warn_of_unused_overrides(options: &Options, stores: &[Arc<Stores>]) {
    let stores: Vec<_> = stores.iter().flat_map(|stores| stores.all()).collect();
    let stores = || stores.iter().map(|store| store.resource());
    for EtcdServersOverride { resource, .. } in &options.etcd_servers_overrides.0 {
        let is_used = !OWN_SERVERS.contains(&resource.group.as_str())
            && stores().any(|stored| {
                stored.storage.kind.group == resource.group
                    && ["*", &stored.resource.resource].contains(&resource.resource.as_str())
            });
        if !is_used {
            tracing::warn!("--etcd-servers-overrides has no effect: nothing is stored as {resource}");
        }
    }
}

/// The storage configuration of all resources. The overridden engines are those of
/// [`EtcdServersOverrides::server_lists`].
pub(crate) fn storage_factory(options: &Options, engines: &Engines, gates: &FeatureGates) -> StorageFactory {
    let Engines { default, overridden } = engines;
    let mut factory = StorageFactory::new(default.clone(), options.key_prefix().trim_end_matches('/'))
        .media_type(options.storage_media_type)
        .garbage_collection(options.management.enable_garbage_collector)
        .maps_as_cbor(gates.enabled(Gate::CBORServingAndStorage))
        .unsafe_deletes(gates.enabled(Gate::AllowUnsafeMalformedObjectDeletion));
    let lists = options.etcd_servers_overrides.server_lists();
    for EtcdServersOverride { resource, servers } in &options.etcd_servers_overrides.0 {
        if OWN_SERVERS.contains(&resource.group.as_str()) {
            continue;
        }
        let at = lists.iter().position(|list| sorted(list) == sorted(servers));
        if let Some(engine) = at.and_then(|at| overridden.get(at)) {
            factory = factory.resource_engine(resource.clone(), engine.clone());
        }
    }
    options.watch_cache.apply(factory)
}
