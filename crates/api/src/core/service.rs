//! Services: one name and address for many pods
//! (<https://kubernetes.io/docs/concepts/services-networking/service/>).
//!
//! A service takes things of which there are only so many: cluster IPs, node ports, a port for health checks. They are
//! taken before the service is stored, kept or given back when the write ends, and given back when the service goes.
//! What is taken is itself stored, so that several servers agree: an address is an `IPAddress` whose creation is the
//! claim, node ports are bits of one `RangeAllocation`. Taking comes before storing and giving back after it, so a
//! crash in between leaks but never shares; the repair controllers find the leaks.

mod affinity;
mod allocation;
mod change;
mod cluster_ip;
mod defaults;
mod families;
mod network;
mod node_port;
mod strategy;
mod table;
mod validation;
mod view;
mod warnings;

pub use cluster_ip::{MANAGED_BY_IP_ALLOCATOR, ip_address_object, ip_addresses, service_cidrs};
pub use network::{IpFamily, NetworkError, PortRange, ServiceNetwork};
pub use node_port::{PortSet, RANGE_ALLOCATION_NAME, node_port_allocations, range_allocation_object};
pub(crate) use validation::validate_ingress_hostname;
pub use view::{allocated_cluster_ips, allocated_node_ports};
pub(crate) use warnings::load_balancer_warnings;

use super::GROUP;
use crate::declare::{Declare, PROXY_VERBS};
use crate::printing::Printer;
use pintle_registry::{Resource, SelectableField};
use std::sync::Arc;
use strategy::{ServiceStatusStrategy, ServiceStrategy};

/// The declaration, for a cluster whose services get addresses and ports from `network`.
pub fn resource(network: &Arc<ServiceNetwork>) -> Resource {
    let mut resource = GROUP
        .namespaced("Service", "services")
        .short_names(["svc"])
        .categories(["all"])
        .connect("proxy", "ServiceProxyOptions", PROXY_VERBS)
        .status(ServiceStatusStrategy(ServiceStrategy { network: network.clone() }))
        .selectable([SelectableField::new("spec.clusterIP"), SelectableField::new("spec.type")])
        .stored_at("services/specs");
    resource.strategy = Arc::new(ServiceStrategy { network: network.clone() });
    resource.table = Arc::new(Printer { columns: table::columns, cells: table::cells });
    resource
}

#[cfg(test)]
mod tests;
