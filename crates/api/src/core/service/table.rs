//! The table columns of services.

use super::view::{CLUSTER_IP, EXTERNAL_NAME, LOAD_BALANCER, NODE_PORT, Service, node_port};
use crate::printing::{NONE, UNKNOWN, age, column, joined, labels, name, text, wide};
use jiff::Timestamp;
use pintle_machinery::{Value, ValueExt};
use pintle_registry::{Cell, Column};
use std::collections::BTreeSet;

pub(super) fn columns() -> Vec<Column> {
    vec![
        Column::name(),
        column("Type", "How the service is reached."),
        column("Cluster-IP", "The first address of the service inside the cluster."),
        column("External-IP", "The addresses of the service outside the cluster."),
        column("Port(s)", "The ports of the service, with their node ports."),
        Column::age(),
        wide("Selector", "The labels of the pods behind the service."),
    ]
}

pub(super) fn cells(service: &Value, now: Timestamp) -> Vec<Cell> {
    let ports: Vec<String> = service.ports().iter().map(port_text).collect();
    vec![
        name(service),
        text(service, "spec.type"),
        service.cluster_ips().first().copied().unwrap_or(NONE).into(),
        external_ip(service).into(),
        if ports.is_empty() { NONE.into() } else { ports.join(",").into() },
        age(service, now),
        labels(service.map_at("spec.selector")).into(),
    ]
}

fn port_text(port: &Value) -> String {
    let (number, protocol) = (port.i64_at("port").unwrap_or_default(), port.str_at("protocol"));
    match node_port(port) {
        ..=0 => format!("{number}/{protocol}"),
        node_port => format!("{number}:{node_port}/{protocol}"),
    }
}

fn external_ip(service: &Value) -> String {
    let external_ips = joined(service.items_at("spec.externalIPs"), ",");
    match service.service_type() {
        CLUSTER_IP | NODE_PORT if external_ips.is_empty() => NONE.to_owned(),
        CLUSTER_IP | NODE_PORT => external_ips,
        LOAD_BALANCER => {
            let balancers = load_balancer_addresses(service);
            match (balancers.is_empty(), external_ips.is_empty()) {
                (true, true) => "<pending>".to_owned(),
                (false, true) => balancers,
                (true, false) => external_ips,
                (false, false) => format!("{balancers},{external_ips}"),
            }
        }
        EXTERNAL_NAME => service.str_at("spec.externalName").to_owned(),
        _ => UNKNOWN.to_owned(),
    }
}

fn load_balancer_addresses(service: &Value) -> String {
    let ingress = service.items_at("status.loadBalancer.ingress").iter();
    let addresses = ingress.map(|ingress| match ingress.str_at("ip") {
        "" => ingress.str_at("hostname"),
        ip => ip,
    });
    let addresses: BTreeSet<&str> = addresses.filter(|address| !address.is_empty()).collect();
    addresses.into_iter().collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    #[test]
    fn services_print_how_they_are_reached() {
        let check = |spec: Value, status: Value, expected: [&str; 4]| {
            let service = json!({"metadata": {"name": "a"}, "spec": spec, "status": status});
            let cells = cells(&service, Timestamp::UNIX_EPOCH);
            assert_eq!(cells[1..5], expected.map(Cell::from));
        };
        check(
            json!({"type": "ClusterIP", "clusterIPs": ["10.0.0.2"], "ports": [{"port": 80, "protocol": "TCP"}]}),
            json!({}),
            ["ClusterIP", "10.0.0.2", "<none>", "80/TCP"],
        );
        check(
            json!({
                "type": "NodePort", "clusterIPs": ["10.0.0.2"], "externalIPs": ["192.0.2.1", "192.0.2.2"],
                "ports": [{"port": 80, "nodePort": 30001, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}]
            }),
            json!({}),
            ["NodePort", "10.0.0.2", "192.0.2.1,192.0.2.2", "80:30001/TCP,53/UDP"],
        );
        check(json!({"type": "LoadBalancer"}), json!({}), ["LoadBalancer", "<none>", "<pending>", "<none>"]);
        check(
            json!({"type": "LoadBalancer", "externalIPs": ["192.0.2.9"]}),
            json!({"loadBalancer": {"ingress": [{"hostname": "lb"}, {"ip": "192.0.2.1"}]}}),
            ["LoadBalancer", "<none>", "192.0.2.1,lb,192.0.2.9", "<none>"],
        );
        check(
            json!({"type": "ExternalName", "externalName": "a.b"}),
            json!({}),
            ["ExternalName", "<none>", "a.b", "<none>"],
        );
    }
}
