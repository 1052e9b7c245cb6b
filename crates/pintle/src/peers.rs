//! The parts of the proxy between servers of different versions.

use crate::{
    Options, aggregation::Aggregation, completed_config::CompletedConfig, dynamic_files::DynamicFiles,
    run_error::RunError, server_chain::ChainStores,
};
use pintle_api::core::peer_server_leases;
use pintle_apiserver::registry::Stores;
use pintle_controlplane::ServerLeases;
use pintle_dialer::{EgressSelector, Network};
use pintle_feature_gates::Gate;
use pintle_machinery::GroupResource;
use pintle_peer_proxy::{EndpointLeases, PeerClient, PeerMetrics, PeerProxy, Sources};
use std::{fs, net::SocketAddr, path::PathBuf, sync::Arc};

/// The file of the authority of other servers, and its contents at the start.
type CaFile = (PathBuf, Vec<u8>);

/// The client of the other servers, until the proxy takes it.
pub(crate) struct Peers {
    /// `None` when requests are not forwarded.
    ca: Option<CaFile>,
}

/// The proxy, and the file that it reloads.
pub(crate) struct PeerParts {
    /// The lease of this server's own address; `None` when the gate is closed.
    pub(crate) leases: Option<EndpointLeases>,
    /// The proxy; `None` when requests are not forwarded.
    pub(crate) proxy: Option<Arc<PeerProxy>>,
    ca: Option<CaFile>,
}

impl Peers {
    /// Validates the options, and loads the file that they name.
    pub(crate) fn load(
        options: &Options,
        is_open: bool,
        aggregation: &Aggregation,
        egress: &EgressSelector,
    ) -> Result<Peers, RunError> {
        options.peers.validate(is_open).map_err(RunError::Options)?;
        let Some(path) = options.peers.ca_file.clone() else { return Ok(Peers { ca: None }) };
        if !aggregation.has_certificate() {
            let message = "error building peer proxy handler, proxy-cert-file not specified";
            return Err(RunError::Options(message.to_owned()));
        }
        let failed =
            |error: String| RunError::Options(format!("--peer-ca-file: {}: {error}", path.display()));
        let contents = fs::read(&path).map_err(|error| failed(error.to_string()))?;
        // A client that is not used yet shows whether the certificates are usable.
        client(contents.clone(), aggregation, egress).map_err(failed)?;
        Ok(Peers { ca: Some((path, contents)) })
    }
}

fn client(ca: Vec<u8>, aggregation: &Aggregation, egress: &EgressSelector) -> Result<PeerClient, String> {
    PeerClient::new(ca, aggregation.certificate(), egress.dialer(Network::ControlPlane))
}

impl PeerParts {
    /// Creates the parts that the configuration asks for.
    pub(crate) fn new(config: &CompletedConfig) -> Result<PeerParts, RunError> {
        if !config.loaded.gates.enabled(Gate::UnknownVersionInteroperabilityProxy) {
            return Ok(PeerParts { leases: None, proxy: None, ca: None });
        }
        let assemble = |error: prometheus::Error| RunError::Assemble(error.to_string());
        let metrics = PeerMetrics::new().map_err(assemble)?;
        config.metrics.register(metrics.collectors()).map_err(assemble)?;
        let leases = leases(config)?;
        let ca = config.loaded.peers.ca.clone();
        let proxy = match &ca {
            None => None,
            Some((_, contents)) => {
                let egress = &config.loaded.egress.selector;
                let client = client(contents.clone(), &config.loaded.aggregation, egress);
                let client = client.map_err(RunError::Assemble)?;
                Some(PeerProxy::new(leases.clone(), client, metrics))
            }
        };
        Ok(PeerParts { leases: Some(leases), proxy, ca })
    }

    /// The file of the authority of other servers, for reloading.
    pub(crate) fn dynamic_files(&self) -> Option<DynamicFiles> {
        let (proxy, (path, contents)) = (self.proxy.clone()?, self.ca.clone()?);
        let apply = Box::new(move |contents: &[Vec<u8>]| match contents {
            [ca] => proxy.client().set_ca(ca.clone()).map_err(|error| format!("--peer-ca-file: {error}")),
            _ => Err("a file is missing".to_owned()),
        });
        Some(DynamicFiles::new("peer CA", vec![path], vec![contents], apply))
    }
}

fn leases(config: &CompletedConfig) -> Result<EndpointLeases, RunError> {
    let resource = peer_server_leases::resource();
    let prefix = format!("{}/{}/", config.storage.prefix(), resource.storage.path);
    let storage = config.storage.plain_storage(resource).map_err(RunError::Assemble)?;
    let id = config.options().identity();
    Ok(EndpointLeases::new(ServerLeases::new(storage, prefix), id, address(config)?))
}

/// The address at which other servers reach this one.
pub(crate) fn address(config: &CompletedConfig) -> Result<SocketAddr, RunError> {
    config.options().peers.reached_at(config.advertised()).map_err(RunError::Options)
}

/// The watch caches that the proxy follows.
pub(crate) fn sources(stores: &ChainStores) -> Sources {
    let cacher = |stores: &Stores, group: &str, resource: &str| {
        stores.store(&GroupResource::new(group, resource)).ok().map(|store| store.cacher().clone())
    };
    Sources {
        leases: cacher(&stores.kube, "coordination.k8s.io", "leases"),
        definitions: cacher(&stores.extensions, "apiextensions.k8s.io", "customresourcedefinitions"),
        api_services: cacher(&stores.aggregator, "apiregistration.k8s.io", "apiservices"),
    }
}
