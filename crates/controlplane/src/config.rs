//! What the controllers have to know.

use crate::{ClusterAuthentication, kubernetes_service::EndpointReconciler};
use pintle_api::core::service::ServiceNetwork;
use std::{net::IpAddr, sync::Arc};

/// What the server tells about itself in the cluster's objects.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where services get their addresses and ports from; the same as the services' strategy has.
    pub service_network: Arc<ServiceNetwork>,
    /// The address at which others reach the server (`--advertise-address`). A loopback address is not published:
    /// endpoints cannot have one.
    pub advertise_address: IpAddr,
    /// The port at which others reach the server (`--secure-port`).
    pub secure_port: u16,
    /// Whether no other server uses the store.
    pub exclusive: bool,
    /// Who is behind the `kubernetes` service (`--endpoint-reconciler-type`).
    pub endpoint_reconciler: EndpointReconciler,
    /// The name of the machine, from which the server's identity is made.
    pub hostname: String,
    /// How extension servers authenticate what this server forwards to them.
    pub cluster_authentication: ClusterAuthentication,
}
