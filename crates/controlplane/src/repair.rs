//! Repairs address and port allocations after crashes and races: releases allocations that no service holds, and adds
//! missing allocations of services.
//!
//! An address is allocated before its service is stored and released after the service is deleted, so an apparent leak
//! may be a write in progress. Leaks are therefore released only after a delay.

mod cluster_ips;
mod node_ports;

use crate::controller::{Controller, log};
use crate::objects::unless_off;
use jiff::Timestamp;
use node_ports::NodePortRepair;
use pintle_api::core::service::ServiceNetwork;
use pintle_machinery::Status;
use pintle_registry::Registry;
use std::{sync::Arc, time::Duration};
use tokio::sync::Mutex;

/// Repairs the allocations of cluster IPs and node ports.
pub struct ServiceIpRepair {
    service_network: Arc<ServiceNetwork>,
    /// Locked while the ports are compared; there is one run at a time.
    node_ports: Mutex<NodePortRepair>,
}

impl ServiceIpRepair {
    /// Creates the controller for the network from which services get addresses and ports.
    pub fn new(service_network: Arc<ServiceNetwork>) -> ServiceIpRepair {
        ServiceIpRepair { service_network, node_ports: Mutex::default() }
    }
}

impl Controller for ServiceIpRepair {
    const NAME: &'static str = "service IP repair";
    /// Each search lists all services.
    const INTERVAL: Duration = Duration::from_secs(180);

    async fn bootstrap(&self, registry: &dyn Registry) -> Result<(), Status> {
        let (mut node_ports, range) = (NodePortRepair::default(), self.service_network.node_ports());
        tokio::try_join!(
            unless_off(cluster_ips::repair(registry, Timestamp::now())),
            unless_off(node_ports.run_once(registry, range)),
        )?;
        Ok(())
    }

    async fn reconcile(&self, registry: &dyn Registry) -> Result<(), Status> {
        log("cluster IP repair", unless_off(cluster_ips::repair(registry, Timestamp::now())).await);
        let (mut node_ports, range) = (self.node_ports.lock().await, self.service_network.node_ports());
        log("node port repair", unless_off(node_ports.run_once(registry, range)).await);
        Ok(())
    }
}
