//! Completes updates of services that omit allocated values or change the type.
//!
//! A client may send the object of its create request again, without the fields that the server has set. And it may
//! change `type` without clearing the fields that only the old type has. So omitted values are copied from the stored
//! object, and fields that no longer apply are dropped, but only if the client did not change them: changed values are
//! validated.

use super::view::{LOAD_BALANCER, NODE_PORT, Service, node_port};
use pintle_machinery::{Value, ValueExt, json};
use std::collections::{BTreeMap, BTreeSet};

/// Synchronizes `clusterIPs` with `clusterIP`, the only field that older clients set.
pub(super) fn normalize_cluster_ips(service: &mut Value, old: Option<&Value>) {
    let Some(old) = old else {
        if !service.cluster_ip().is_empty() && service.cluster_ips().is_empty() {
            let ip = service.cluster_ip().to_owned();
            service.set("spec.clusterIPs", json!([ip]));
        }
        return;
    };
    let same_singular = old.cluster_ip() == service.cluster_ip();
    if same_singular && service.cluster_ips().is_empty() && !old.cluster_ips().is_empty() {
        service.set("spec.clusterIPs", json!(old.cluster_ips()));
    }
    if same_singular || old.cluster_ips() != service.cluster_ips() {
        return;
    }
    // Only `clusterIP` changed: `clusterIPs` follows.
    if service.cluster_ip().is_empty() {
        service.remove_at("spec.clusterIPs");
    } else {
        let ip = service.cluster_ip().to_owned();
        service.set("spec.clusterIPs", json!([ip]));
    }
}

/// Copies the allocated values that the client omitted.
pub(super) fn patch_allocated_values(service: &mut Value, old: &Value) {
    if old.needs_cluster_ip() && service.needs_cluster_ip() {
        if service.cluster_ip().is_empty() && !old.cluster_ip().is_empty() {
            service.set("spec.clusterIP", old.cluster_ip());
        }
        if service.cluster_ips().is_empty() && !old.cluster_ips().is_empty() {
            service.set("spec.clusterIPs", json!(old.cluster_ips()));
        }
    }
    if old.allocates_node_ports() && service.allocates_node_ports() {
        patch_node_ports(service, old);
    }
    if old.needs_health_check_node_port()
        && service.needs_health_check_node_port()
        && service.health_check_node_port() == 0
        && old.health_check_node_port() != 0
    {
        service.set("spec.healthCheckNodePort", old.health_check_node_port());
    }
}

/// Copies node ports to the ports of the same name, unless another port uses them now.
fn patch_node_ports(service: &mut Value, old: &Value) {
    let now: BTreeSet<i64> = service.node_port_numbers().into_iter().collect();
    let kept: BTreeSet<i64> = old.node_port_numbers().into_iter().filter(|port| now.contains(port)).collect();
    let by_name: BTreeMap<&str, i64> =
        old.ports().iter().map(|port| (port.str_at("name"), node_port(port))).collect();
    for port in service.items_at_mut("spec.ports") {
        let before = by_name.get(port.str_at("name")).copied().unwrap_or_default();
        if node_port(port) == 0 && before != 0 && !kept.contains(&before) {
            port.set("nodePort", before);
        }
    }
}

/// Drops the fields that the new type does not have and the client did not change.
pub(super) fn drop_type_dependent_fields(service: &mut Value, old: &Value) {
    if old.needs_cluster_ip() && !service.needs_cluster_ip() {
        if old.cluster_ip() == service.cluster_ip() && old.cluster_ips() == service.cluster_ips() {
            service.remove_at("spec.clusterIP");
            service.remove_at("spec.clusterIPs");
        }
        drop_if_same(service, old, "spec.ipFamilies");
        drop_if_same(service, old, "spec.ipFamilyPolicy");
    }
    let has_node_ports = |service: &Value| matches!(service.service_type(), NODE_PORT | LOAD_BALANCER);
    if has_node_ports(old) && !has_node_ports(service) {
        let before: BTreeSet<i64> = old.node_port_numbers().into_iter().collect();
        if service.node_port_numbers().iter().all(|port| before.contains(port)) {
            for port in service.items_at_mut("spec.ports") {
                port.remove_at("nodePort");
            }
        }
    }
    if old.needs_health_check_node_port()
        && !service.needs_health_check_node_port()
        && old.health_check_node_port() == service.health_check_node_port()
    {
        service.remove_at("spec.healthCheckNodePort");
    }
    if old.service_type() == LOAD_BALANCER && service.service_type() != LOAD_BALANCER {
        drop_if_same(service, old, "spec.allocateLoadBalancerNodePorts");
        drop_if_same(service, old, "spec.loadBalancerClass");
    }
    if old.is_externally_accessible() && !service.is_externally_accessible() {
        drop_if_same(service, old, "spec.externalTrafficPolicy");
    }
    if service.service_type() != LOAD_BALANCER {
        service.remove_at("status.loadBalancer");
    }
}

fn drop_if_same(service: &mut Value, old: &Value, path: &str) {
    if service.at(path) == old.at(path) {
        service.remove_at(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cluster_ips_follow_the_one_older_clients_know() {
        let check = |old: Value, new: Value, expected: Value| {
            let mut service = json!({"spec": new});
            normalize_cluster_ips(&mut service, Some(&json!({"spec": old})));
            assert_eq!(service, json!({"spec": expected}));
        };
        let both = json!({"clusterIP": "10.0.0.2", "clusterIPs": ["10.0.0.2"]});
        check(both.clone(), json!({"clusterIP": "10.0.0.2"}), both.clone());
        check(
            both.clone(),
            json!({"clusterIP": "10.0.0.3", "clusterIPs": ["10.0.0.2"]}),
            json!({"clusterIP": "10.0.0.3", "clusterIPs": ["10.0.0.3"]}),
        );
        check(both.clone(), json!({"clusterIPs": ["10.0.0.2"]}), json!({}));
        check(both, json!({"clusterIPs": ["10.0.0.3"]}), json!({"clusterIPs": ["10.0.0.3"]}));
        check(json!({}), json!({"clusterIP": "None"}), json!({"clusterIP": "None", "clusterIPs": ["None"]}));
    }

    #[test]
    fn node_ports_are_kept_by_name() {
        let check = |old: Value, new: Value, expected: Value| {
            let mut service = json!({"spec": {"type": "NodePort", "ports": new}});
            patch_allocated_values(&mut service, &json!({"spec": {"type": "NodePort", "ports": old}}));
            assert_eq!(service["spec"]["ports"], expected);
        };
        let old = json!([{"name": "a", "nodePort": 1}, {"name": "b", "nodePort": 2}]);
        check(old.clone(), json!([{"name": "a"}]), json!([{"name": "a", "nodePort": 1}]));
        check(old.clone(), json!([{"name": "c"}]), json!([{"name": "c"}]));
        check(
            old,
            json!([{"name": "a"}, {"name": "b", "nodePort": 1}]),
            json!([{"name": "a"}, {"name": "b", "nodePort": 1}]),
        );
    }

    #[test]
    fn another_type_drops_what_it_does_not_have() {
        let check = |old: Value, new: Value, expected: Value| {
            let mut service = json!({"spec": new});
            drop_type_dependent_fields(&mut service, &json!({"spec": old}));
            assert_eq!(service, json!({"spec": expected}));
        };
        let cluster_ip = json!({
            "type": "ClusterIP", "clusterIP": "10.0.0.2", "clusterIPs": ["10.0.0.2"],
            "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack"
        });
        let mut external = cluster_ip.clone();
        external["type"] = json!("ExternalName");
        check(cluster_ip.clone(), external.clone(), json!({"type": "ExternalName"}));
        external["clusterIP"] = json!("10.0.0.3");
        check(
            cluster_ip,
            external,
            json!({"type": "ExternalName", "clusterIP": "10.0.0.3", "clusterIPs": ["10.0.0.2"]}),
        );
        let balanced = json!({
            "type": "LoadBalancer", "externalTrafficPolicy": "Local", "healthCheckNodePort": 30001,
            "allocateLoadBalancerNodePorts": true, "loadBalancerClass": "a/b",
            "ports": [{"port": 80, "nodePort": 30002}]
        });
        let mut plain = balanced.clone();
        plain["type"] = json!("ClusterIP");
        check(balanced.clone(), plain.clone(), json!({"type": "ClusterIP", "ports": [{"port": 80}]}));
        plain["ports"][0]["nodePort"] = json!(30003);
        plain["loadBalancerClass"] = json!("a/c");
        check(
            balanced,
            plain,
            json!({
                "type": "ClusterIP", "ports": [{"port": 80, "nodePort": 30003}], "loadBalancerClass": "a/c"
            }),
        );
    }
}
