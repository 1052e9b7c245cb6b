//! Sets the defaults of services.

use super::change::normalize_cluster_ips;
use super::view::{CLUSTER_IP, EXTERNAL_NAME, LOAD_BALANCER, Service};
use pintle_machinery::{Value, ValueExt, json};

/// The default timeout of `ClientIP` session affinity: three hours, in seconds.
const CLIENT_IP_AFFINITY_SECONDS: i64 = 10800;

pub(super) fn set_defaults(service: &mut Value) {
    default_string(service, "spec.sessionAffinity", "None");
    match service.str_at("spec.sessionAffinity") {
        "None" => {
            service.remove_at("spec.sessionAffinityConfig");
        }
        "ClientIP" if service.at("spec.sessionAffinityConfig.clientIP.timeoutSeconds").is_none() => {
            let config = json!({"clientIP": {"timeoutSeconds": CLIENT_IP_AFFINITY_SECONDS}});
            service.set("spec.sessionAffinityConfig", config);
        }
        _ => {}
    }
    default_string(service, "spec.type", CLUSTER_IP);
    for port in service.items_at_mut("spec.ports") {
        default_string(port, "protocol", "TCP");
        let is_unset = match port.at("targetPort") {
            None => true,
            Some(target) => target.as_i64() == Some(0) || target.as_str() == Some(""),
        };
        if is_unset {
            let number = port.i64_at("port").unwrap_or_default();
            port.set("targetPort", number);
        }
    }
    if service.is_externally_accessible() {
        default_string(service, "spec.externalTrafficPolicy", "Cluster");
    }
    if matches!(service.service_type(), super::view::NODE_PORT | LOAD_BALANCER | CLUSTER_IP) {
        service.set_default("spec.internalTrafficPolicy", "Cluster");
    }
    if service.service_type() == LOAD_BALANCER {
        service.set_default("spec.allocateLoadBalancerNodePorts", true);
        for ingress in service.items_at_mut("status.loadBalancer.ingress") {
            if !ingress.str_at("ip").is_empty() {
                ingress.set_default("ipMode", "VIP");
            }
        }
    }
}

/// Normalizes the object before it is stored: `clusterIPs` follows the `clusterIP` of an older client, and
/// `ExternalName` services have no internal traffic policy.
pub(super) fn canonicalize(service: &mut Value) {
    normalize_cluster_ips(service, None);
    drop_needless_traffic_policy(service);
}

/// Drops the internal traffic policy of `ExternalName` services, to which it does not apply.
pub(super) fn drop_needless_traffic_policy(service: &mut Value) {
    if service.service_type() == EXTERNAL_NAME {
        service.remove_at("spec.internalTrafficPolicy");
    }
}

/// Sets a string that is absent or empty.
fn default_string(object: &mut Value, path: &str, default: &str) {
    if object.str_at(path).is_empty() {
        object.set(path, default);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specs_are_completed() {
        let check = |spec: Value, expected: Value| {
            let mut service = json!({"spec": spec});
            set_defaults(&mut service);
            assert_eq!(service, json!({"spec": expected}));
            let again = service.clone();
            set_defaults(&mut service);
            assert_eq!(service, again);
        };
        check(
            json!({"ports": [{"port": 80}, {"port": 81, "targetPort": "web", "protocol": "UDP"}]}),
            json!({
                "type": "ClusterIP", "sessionAffinity": "None", "internalTrafficPolicy": "Cluster",
                "ports": [
                    {"port": 80, "targetPort": 80, "protocol": "TCP"},
                    {"port": 81, "targetPort": "web", "protocol": "UDP"}
                ]
            }),
        );
        check(
            json!({"externalIPs": ["192.0.2.1"], "sessionAffinityConfig": {}}),
            json!({
                "type": "ClusterIP", "sessionAffinity": "None", "internalTrafficPolicy": "Cluster",
                "externalIPs": ["192.0.2.1"], "externalTrafficPolicy": "Cluster"
            }),
        );
        check(
            json!({"type": "LoadBalancer", "sessionAffinity": "ClientIP"}),
            json!({
                "type": "LoadBalancer", "sessionAffinity": "ClientIP", "internalTrafficPolicy": "Cluster",
                "externalTrafficPolicy": "Cluster", "allocateLoadBalancerNodePorts": true,
                "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 10800}}
            }),
        );
        check(
            json!({"type": "ExternalName", "externalName": "a"}),
            json!({"type": "ExternalName", "externalName": "a", "sessionAffinity": "None"}),
        );
    }

    #[test]
    fn load_balancer_addresses_get_a_mode() {
        let mut service = json!({
            "spec": {"type": "LoadBalancer"},
            "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}, {"hostname": "a"}]}}
        });
        set_defaults(&mut service);
        let ingress = json!([{"ip": "192.0.2.1", "ipMode": "VIP"}, {"hostname": "a"}]);
        assert_eq!(service["status"]["loadBalancer"]["ingress"], ingress);
    }
}
