//! Warnings about accepted services.

use super::view::{CLUSTER_IP, EXTERNAL_NAME, NONE, Service};
use pintle_machinery::{
    FieldPath, Value, ValueExt,
    meta::ObjectMeta,
    validation::{warnings_for_cidr, warnings_for_ip},
};

const TOPOLOGY_HINTS: &str = "service.kubernetes.io/topology-aware-hints";
const TOPOLOGY_MODE: &str = "service.kubernetes.io/topology-mode";

pub(super) fn warnings(service: &Value) -> Vec<String> {
    let mut warnings = Vec::new();
    let spec = FieldPath::new("spec");
    if service.annotation(TOPOLOGY_HINTS).is_some() {
        let text = format!("annotation {TOPOLOGY_HINTS} is deprecated, please use {TOPOLOGY_MODE} instead");
        warnings.push(text);
    }
    let is_headless = service.service_type() == CLUSTER_IP && service.cluster_ip() == NONE;
    if !service.cluster_ip().is_empty() && service.cluster_ip() != NONE {
        for (index, ip) in service.cluster_ips().into_iter().enumerate() {
            warnings.extend(warnings_for_ip(&spec.child("clusterIPs").index(index), ip));
        }
    }
    let load_balancer_ip = service.str_at("spec.loadBalancerIP");
    let external_ips = service.items_at("spec.externalIPs");
    if is_headless {
        let ignored = [
            (!load_balancer_ip.is_empty(), "spec.loadBalancerIP"),
            (!external_ips.is_empty(), "spec.externalIPs"),
            (service.str_at("spec.sessionAffinity") != "None", "spec.SessionAffinity"),
        ];
        for (_, field) in ignored.into_iter().filter(|(is_set, _)| *is_set) {
            warnings.push(format!("{field} is ignored for headless services"));
        }
    }
    for (index, ip) in external_ips.iter().filter_map(Value::as_str).enumerate() {
        warnings.extend(warnings_for_ip(&spec.child("externalIPs").index(index), ip));
    }
    let is_external_name = service.service_type() == EXTERNAL_NAME;
    if !external_ips.is_empty() && !is_headless && !is_external_name {
        let text = "spec.externalIPs is deprecated and may no longer be implemented in some clusters";
        warnings.push(text.to_owned());
    }
    if !load_balancer_ip.is_empty() {
        warnings.extend(warnings_for_ip(&spec.child("loadBalancerIP"), load_balancer_ip));
    }
    let ranges = service.items_at("spec.loadBalancerSourceRanges").iter().filter_map(Value::as_str);
    for (index, cidr) in ranges.enumerate() {
        warnings.extend(warnings_for_cidr(&spec.child("loadBalancerSourceRanges").index(index), cidr));
    }
    if is_external_name && !external_ips.is_empty() {
        warnings.push(format!("spec.externalIPs is ignored when spec.type is \"{EXTERNAL_NAME}\""));
    }
    if !is_external_name && !service.str_at("spec.externalName").is_empty() {
        warnings.push(format!("spec.externalName is ignored when spec.type is not \"{EXTERNAL_NAME}\""));
    }
    if service.str_at("spec.trafficDistribution") == "PreferClose" {
        let text = "spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"";
        warnings.push(text.to_owned());
    }
    warnings
}

/// Warnings about addresses of load balancers in a non-canonical format.
pub(crate) fn load_balancer_warnings(object: &Value, path: &str) -> Vec<String> {
    let mut warnings = Vec::new();
    for (index, ingress) in object.items_at(path).iter().enumerate() {
        let ip = ingress.str_at("ip");
        if !ip.is_empty() {
            warnings.extend(warnings_for_ip(&FieldPath::new(path).index(index), ip));
        }
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    #[test]
    fn what_has_no_effect_is_told() {
        let check = |spec: Value, expected: &[&str]| assert_eq!(warnings(&json!({"spec": spec})), expected);
        check(json!({"type": "ClusterIP", "clusterIP": "10.0.0.2", "clusterIPs": ["10.0.0.2"]}), &[]);
        check(
            json!({
                "type": "ClusterIP", "clusterIP": "None", "sessionAffinity": "ClientIP",
                "externalIPs": ["192.0.2.1"], "loadBalancerIP": "192.0.2.2"
            }),
            &[
                "spec.loadBalancerIP is ignored for headless services",
                "spec.externalIPs is ignored for headless services",
                "spec.SessionAffinity is ignored for headless services",
            ],
        );
        check(
            json!({"type": "ExternalName", "externalIPs": ["192.0.2.1"]}),
            &[r#"spec.externalIPs is ignored when spec.type is "ExternalName""#],
        );
        check(
            json!({"type": "NodePort", "externalName": "a", "trafficDistribution": "PreferClose"}),
            &[
                r#"spec.externalName is ignored when spec.type is not "ExternalName""#,
                r#"spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone""#,
            ],
        );
    }
}
