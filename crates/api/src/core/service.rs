//! Services: one name and address for many pods
//! (<https://kubernetes.io/docs/concepts/services-networking/service/>).
//!
//! Cluster IPs, node ports and health check node ports are limited resources. A write allocates them before the service
//! is stored; it releases the new ones if it fails, and the unused old ones if it succeeds. A deletion is followed by
//! the release of all. Allocations are stored, so that several servers agree on them: an address is an `IPAddress`,
//! allocated by its creation, and node ports are bits of one `RangeAllocation`. Because allocation precedes and release
//! follows the write, a crash can leak resources but never share them; the repair controllers release the leaked ones.

mod affinity;
mod allocation;
mod change;
mod cluster_ip;
mod defaults;
mod families;
mod metrics;
mod network;
mod node_port;
mod proxy;
mod strategy;
mod table;
mod validation;
mod view;
mod warnings;

pub use cluster_ip::{
    MANAGED_BY_IP_ALLOCATOR, ip_address_object, ip_addresses, is_in_service_cidrs, publish_allocated_ips,
    service_cidrs,
};
pub use metrics::AllocationMetrics;
pub use network::{IpFamily, NetworkError, PortRange, ServiceNetwork};
pub use node_port::{
    PortSet, RANGE_ALLOCATION_NAME, node_port_allocations, publish_allocated_ports, range_allocation_object,
};
pub(crate) use validation::validate_ingress_hostname;
pub use view::{allocated_cluster_ips, allocated_node_ports};
pub(crate) use warnings::load_balancer_warnings;

use super::group::GROUP;
use crate::declare::Declare;
use crate::printing::Printer;
use pintle_registry::{Resource, SelectableField};
use std::sync::Arc;
use strategy::{ServiceStatusStrategy, ServiceStrategy};

/// The declaration, for a cluster that allocates cluster IPs and node ports from `network`.
pub fn resource(network: &Arc<ServiceNetwork>) -> Resource {
    let mut resource = GROUP
        .namespaced("Service", "services")
        .short_names(["svc"])
        .categories(["all"])
        .proxied("ServiceProxyOptions", proxy::ServiceProxy)
        .status(ServiceStatusStrategy(ServiceStrategy { network: network.clone() }))
        .selectable([SelectableField::new("spec.clusterIP"), SelectableField::new("spec.type")])
        .stored_at("services/specs");
    resource.strategy = Arc::new(ServiceStrategy { network: network.clone() });
    resource.table = Arc::new(Printer { columns: table::columns, cells: table::cells, rank: None });
    resource
}

#[cfg(test)]
mod tests;
