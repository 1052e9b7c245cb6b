//! The configuration of the controllers.

use crate::{ClusterAuthentication, kubernetes_service::EndpointReconciler};
use pintle_api::core::service::ServiceNetwork;
use std::{net::IpAddr, sync::Arc};

/// The settings that the controllers need, and the server's addresses in the cluster's objects.
#[derive(Debug, Clone)]
pub struct Config {
    /// The network from which services get addresses and ports; shared with the services' strategy.
    pub service_network: Arc<ServiceNetwork>,
    /// The address at which clients reach the server (`--advertise-address`). A loopback address is not published,
    /// because endpoints cannot have one.
    pub advertise_address: IpAddr,
    /// The port at which clients reach the server (`--secure-port`).
    pub secure_port: u16,
    /// Whether no other server uses the store.
    pub exclusive: bool,
    /// The source of the addresses behind the `kubernetes` service (`--endpoint-reconciler-type`).
    pub endpoint_reconciler: EndpointReconciler,
    /// The host name, from which the server's identity is derived.
    pub hostname: String,
    /// The data with which extension servers authenticate forwarded requests.
    pub cluster_authentication: ClusterAuthentication,
}
