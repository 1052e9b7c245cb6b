//! Computes the usage of services.

use crate::plugins::quantities::{Quantities, count};
use pintle_machinery::{Value, ValueExt};

const RESOURCES: [&str; 4] = ["count/services", "services", "services.nodeports", "services.loadbalancers"];

pub(super) fn counts(name: &str) -> bool {
    RESOURCES.contains(&name)
}

/// The usage of a service. Node ports are not allocated yet, so the number that the service will get counts.
pub(super) fn usage(service: &Value) -> Quantities {
    let ports = service.items_at("spec.ports");
    let has_port = |port: &&Value| port.i64_at("nodePort").unwrap_or_default() != 0;
    let allocates = service.at("spec.allocateLoadBalancerNodePorts").and_then(Value::as_bool).unwrap_or(true);
    let (node_ports, balancers) = match service.str_at("spec.type") {
        "NodePort" => (ports.len(), 0),
        "LoadBalancer" if allocates => (ports.len(), 1),
        "LoadBalancer" => (ports.iter().filter(has_port).count(), 1),
        _ => (0, 0),
    };
    RESOURCES
        .into_iter()
        .zip([1, 1, node_ports, balancers])
        .map(|(name, n)| (name.to_owned(), count(n)))
        .collect()
}
