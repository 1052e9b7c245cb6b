//! Accessors to the fields of services, for validation and allocation.

use super::network::IpFamily;
use pintle_go_forms::parse_ip_sloppy;
use pintle_machinery::{Value, ValueExt};
use std::collections::BTreeSet;

pub(super) const NONE: &str = "None";
pub(super) const CLUSTER_IP: &str = "ClusterIP";
pub(super) const NODE_PORT: &str = "NodePort";
pub(super) const LOAD_BALANCER: &str = "LoadBalancer";
pub(super) const EXTERNAL_NAME: &str = "ExternalName";

pub(super) const SINGLE_STACK: &str = "SingleStack";
pub(super) const PREFER_DUAL_STACK: &str = "PreferDualStack";
pub(super) const REQUIRE_DUAL_STACK: &str = "RequireDualStack";

/// The fields of a service, with zero values for absent ones.
pub(super) trait Service {
    fn service_type(&self) -> &str;
    fn cluster_ip(&self) -> &str;
    fn cluster_ips(&self) -> Vec<&str>;
    fn ip_families(&self) -> Vec<&str>;
    fn ip_family_policy(&self) -> Option<&str>;
    fn ports(&self) -> &[Value];
    fn health_check_node_port(&self) -> i64;
    fn has_selector(&self) -> bool;
    /// Whether `clusterIP` applies: to all types but `ExternalName`. Headless services have the value `None`.
    fn needs_cluster_ip(&self) -> bool;
    /// Whether clients outside the cluster can reach the service: by load balancer, node ports or external IPs.
    fn is_externally_accessible(&self) -> bool;
    fn needs_health_check_node_port(&self) -> bool;
    /// Whether ports without a node port are allocated one.
    fn allocates_node_ports(&self) -> bool;
    fn node_port_numbers(&self) -> Vec<i64>;
    /// Whether `None` is the only item of `clusterIPs`.
    fn is_headless(&self) -> bool;
}

impl Service for Value {
    fn service_type(&self) -> &str {
        self.str_at("spec.type")
    }

    fn cluster_ip(&self) -> &str {
        self.str_at("spec.clusterIP")
    }

    fn cluster_ips(&self) -> Vec<&str> {
        strings(self, "spec.clusterIPs")
    }

    fn ip_families(&self) -> Vec<&str> {
        strings(self, "spec.ipFamilies")
    }

    fn ip_family_policy(&self) -> Option<&str> {
        self.at("spec.ipFamilyPolicy")?.as_str()
    }

    fn ports(&self) -> &[Value] {
        self.items_at("spec.ports")
    }

    fn health_check_node_port(&self) -> i64 {
        self.i64_at("spec.healthCheckNodePort").unwrap_or_default()
    }

    fn has_selector(&self) -> bool {
        !self.map_at("spec.selector").is_empty()
    }

    fn needs_cluster_ip(&self) -> bool {
        self.service_type() != EXTERNAL_NAME
    }

    fn is_externally_accessible(&self) -> bool {
        match self.service_type() {
            LOAD_BALANCER | NODE_PORT => true,
            CLUSTER_IP => !self.items_at("spec.externalIPs").is_empty(),
            _ => false,
        }
    }

    fn needs_health_check_node_port(&self) -> bool {
        self.service_type() == LOAD_BALANCER && self.str_at("spec.externalTrafficPolicy") == "Local"
    }

    fn allocates_node_ports(&self) -> bool {
        let allocates = self.at("spec.allocateLoadBalancerNodePorts").and_then(Value::as_bool);
        match self.service_type() {
            NODE_PORT => true,
            LOAD_BALANCER => allocates.unwrap_or(true),
            _ => false,
        }
    }

    fn node_port_numbers(&self) -> Vec<i64> {
        self.ports().iter().map(node_port).filter(|port| *port != 0).collect()
    }

    fn is_headless(&self) -> bool {
        self.cluster_ips() == [NONE]
    }
}

/// `nodePort` of a port, or 0.
pub(super) fn node_port(port: &Value) -> i64 {
    port.i64_at("nodePort").unwrap_or_default()
}

/// The family of a cluster IP, or `None` if it is not an address.
pub(super) fn family_of(cluster_ip: &str) -> Option<IpFamily> {
    parse_ip_sloppy(cluster_ip).map(IpFamily::of)
}

/// The addresses allocated to a service.
pub fn allocated_cluster_ips(service: &Value) -> Vec<&str> {
    if !service.needs_cluster_ip() {
        return Vec::new();
    }
    let mut ips = service.cluster_ips();
    if ips.is_empty() && !service.cluster_ip().is_empty() {
        ips.push(service.cluster_ip());
    }
    ips.retain(|ip| family_of(ip).is_some());
    ips
}

/// The node ports allocated to a service, including that of its health check. A port of several protocols is allocated
/// once; one that occurs twice in a protocol, which validation refuses now, is returned twice.
pub fn allocated_node_ports(service: &Value) -> Vec<i64> {
    let health_check = service.needs_health_check_node_port().then(|| service.health_check_node_port());
    let of_ports = service.ports().iter().map(|port| (node_port(port), port.str_at("protocol")));
    let all = of_ports.chain(health_check.map(|port| (port, "TCP"))).filter(|(port, _)| *port != 0);
    let (mut ports, mut seen) = (Vec::new(), BTreeSet::new());
    for (port, protocol) in all {
        let is_new = seen.range((port, "")..).next().is_none_or(|(next, _)| *next != port);
        if !seen.insert((port, protocol)) || is_new {
            ports.push(port);
        }
    }
    ports
}

fn strings<'a>(object: &'a Value, path: &str) -> Vec<&'a str> {
    object.items_at(path).iter().filter_map(Value::as_str).collect()
}
