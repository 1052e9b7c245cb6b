//! Repairs address and port allocations after crashes and races: releases allocations that no service holds, and adds
//! missing allocations of services.
//!
//! An address is allocated before its service is stored and released after the service is deleted, so an apparent leak
//! may be a write in progress. Leaks are therefore released only after a delay. Cluster IPs are looked at when their
//! service or their `IPAddress` object changes, and all allocations at intervals.

mod cluster_ips;
mod follower;
mod metrics;
mod node_ports;

use crate::controller::{Controller, log};
use crate::event_recorder::EventRecorder;
use crate::objects::unless_off;
use cluster_ips::{Compared, Repairs};
use follower::Follower;
pub use follower::RepairedCaches;
use jiff::Timestamp;
use metrics::RepairMetrics;
use node_ports::NodePortRepair;
use pintle_api::core::service::ServiceNetwork;
use pintle_controller::WorkQueueMetrics;
use pintle_machinery::Status;
use pintle_registry::Registry;
use prometheus::core::Collector;
use std::{sync::Arc, time::Duration};
use tokio::sync::Mutex;

/// Repairs the allocations of cluster IPs and node ports.
pub struct ServiceIpRepair {
    service_network: Arc<ServiceNetwork>,
    /// Locked while the ports are compared; there is one run at a time.
    node_ports: Mutex<NodePortRepair>,
    /// `None` when one of the resources is disabled.
    follower: Option<Follower>,
    cluster_ip_metrics: RepairMetrics,
    node_port_metrics: RepairMetrics,
    cluster_ip_events: EventRecorder,
    node_port_events: EventRecorder,
}

impl ServiceIpRepair {
    /// Creates the controller for the network from which services get addresses and ports, in the server with this
    /// hostname.
    ///
    /// # Errors
    /// When a metric is malformed, which would be a defect.
    pub fn new(
        service_network: Arc<ServiceNetwork>,
        hostname: &str,
    ) -> Result<ServiceIpRepair, prometheus::Error> {
        Ok(ServiceIpRepair {
            service_network,
            node_ports: Mutex::default(),
            follower: None,
            cluster_ip_metrics: RepairMetrics::of_cluster_ips()?,
            node_port_metrics: RepairMetrics::of_node_ports()?,
            cluster_ip_events: EventRecorder::new("ipallocator-repair-controller", hostname),
            node_port_events: EventRecorder::new("portallocator-repair-controller", hostname),
        })
    }

    /// The controller that also follows the changes in these caches.
    pub fn following(self, caches: RepairedCaches, queues: &WorkQueueMetrics) -> ServiceIpRepair {
        ServiceIpRepair { follower: Some(Follower::new(caches, queues)), ..self }
    }

    /// The metrics, to be registered.
    pub fn collectors(&self) -> Vec<Box<dyn Collector>> {
        let mut collectors = self.cluster_ip_metrics.collectors();
        collectors.extend(self.node_port_metrics.collectors());
        collectors
    }

    fn of_cluster_ips<'a>(&'a self, registry: &'a dyn Registry) -> Repairs<'a> {
        Repairs { registry, metrics: &self.cluster_ip_metrics, events: &self.cluster_ip_events }
    }

    fn of_node_ports<'a>(&'a self, registry: &'a dyn Registry) -> Repairs<'a> {
        Repairs { registry, metrics: &self.node_port_metrics, events: &self.node_port_events }
    }

    async fn repair_cluster_ips(&self, registry: &dyn Registry) -> Result<Compared, Status> {
        let mut compared = Compared::default();
        let repair = cluster_ips::repair(self.of_cluster_ips(registry), Timestamp::now(), &mut compared);
        let result = unless_off(repair).await;
        self.cluster_ip_metrics.ended(&result);
        result.map(|()| compared)
    }

    async fn repair_node_ports(&self, registry: &dyn Registry) -> Result<(), Status> {
        let mut node_ports = self.node_ports.lock().await;
        let range = self.service_network.node_ports();
        let result =
            unless_off(node_ports.run_once(self.of_node_ports(registry), range, Timestamp::now())).await;
        self.node_port_metrics.ended(&result);
        result
    }
}

impl Controller for ServiceIpRepair {
    const NAME: &'static str = "service IP repair";
    /// Each search lists all services.
    const INTERVAL: Duration = Duration::from_secs(180);

    async fn bootstrap(&self, registry: &dyn Registry) -> Result<(), Status> {
        self.repair_cluster_ips(registry).await?;
        // Last: a bootstrap that fails is repeated at once, and a run counts the ports that look leaked.
        self.repair_node_ports(registry).await
    }

    async fn reconcile(&self, registry: &dyn Registry) -> Result<(), Status> {
        let compared = self.repair_cluster_ips(registry).await;
        if let (Ok(compared), Some(follower)) = (&compared, &self.follower) {
            follower.look_again(compared);
        }
        log("cluster IP repair", compared.map(drop));
        log("node port repair", self.repair_node_ports(registry).await);
        for events in [&self.cluster_ip_events, &self.node_port_events] {
            events.refresh(registry, Timestamp::now()).await;
        }
        Ok(())
    }

    async fn follow(&self, registry: &dyn Registry) {
        match &self.follower {
            Some(follower) => follower.run(self.of_cluster_ips(registry)).await,
            None => std::future::pending().await,
        }
    }
}
