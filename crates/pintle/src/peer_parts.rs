//! The parts of the proxy between servers of different versions.

use crate::{
    completed_config::CompletedConfig,
    dynamic_files::DynamicFiles,
    peers::{CaFile, client},
    run_error::RunError,
};
use pintle_api::core::peer_server_leases;
use pintle_controlplane::ServerLeases;
use pintle_feature_gates::Gate;
use pintle_peer_proxy::{EndpointLeases, PeerMetrics, PeerProxy};
use std::{net::SocketAddr, sync::Arc};

/// The proxy, and the file that it reloads.
pub(crate) struct PeerParts {
    /// The lease of this server's own address; `None` when the gate is closed.
    pub(crate) leases: Option<EndpointLeases>,
    /// The proxy; `None` when requests are not forwarded.
    pub(crate) proxy: Option<Arc<PeerProxy>>,
    ca: Option<CaFile>,
}

impl PeerParts {
    /// Creates the parts that the configuration asks for.
    pub(crate) fn new(config: &CompletedConfig) -> Result<PeerParts, RunError> {
        if !config.loaded.gates.enabled(Gate::UnknownVersionInteroperabilityProxy) {
            return Ok(PeerParts { leases: None, proxy: None, ca: None });
        }
        let metrics = PeerMetrics::new()?;
        config.metrics.register(metrics.collectors())?;
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
    let storage = config.storage.plain_storage(resource)?;
    let id = config.options().identity();
    Ok(EndpointLeases::new(ServerLeases::new(storage, prefix), id, address(config)?))
}

/// The address at which other servers reach this one.
pub(crate) fn address(config: &CompletedConfig) -> Result<SocketAddr, RunError> {
    config.options().peers.reached_at(config.advertised()).map_err(RunError::Options)
}
