//! Validates the traffic policies and load balancer fields of services.

use crate::core::service::view::{CLUSTER_IP, LOAD_BALANCER, NODE_PORT, Service};
use crate::{field_checks, rules};
use pintle_feature_gates::{Gate, enabled};
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, Value, ValueExt, meta::ObjectMeta, validation::is_qualified_name,
};
use std::collections::HashSet;

use super::ports::validate_number;

const SOURCE_RANGES_ANNOTATION: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";
const ONLY_LOAD_BALANCER: &str = "may only be used when `type` is 'LoadBalancer'";

/// Validates `loadBalancerSourceRanges`, or the annotation that preceded it.
pub(super) fn validate_source_ranges(service: &Value, old: Option<&Value>) -> ErrorList {
    let mut errors = ErrorList::new();
    let is_load_balancer = service.service_type() == LOAD_BALANCER;
    let ranges = service.items_at("spec.loadBalancerSourceRanges");
    if !ranges.is_empty() {
        // As in the reference, the path is not spelled like the field.
        let path = FieldPath::new("spec").child("LoadBalancerSourceRanges");
        if !is_load_balancer {
            errors.push(FieldError::forbidden(&path, ONLY_LOAD_BALANCER));
        }
        let old_ranges = rules::value_at(old.unwrap_or(&Value::Null), "spec.loadBalancerSourceRanges");
        let old_ranges = old_ranges.as_array().into_iter().flatten().filter_map(Value::as_str);
        let old_ranges: HashSet<&str> = old_ranges.map(str::trim).collect();
        for (index, range) in ranges.iter().filter_map(Value::as_str).enumerate() {
            errors.extend(field_checks::legacy_cidr(&path.index(index), range.trim(), &old_ranges));
        }
    } else if let Some(annotation) = service.annotation(SOURCE_RANGES_ANNOTATION) {
        let path = FieldPath::new("metadata").child("annotations").key(SOURCE_RANGES_ANNOTATION);
        if !is_load_balancer {
            errors.push(FieldError::forbidden(&path, ONLY_LOAD_BALANCER));
        }
        let is_unchanged = old.and_then(|old| old.annotation(SOURCE_RANGES_ANNOTATION)) == Some(annotation);
        if !is_unchanged && !annotation.trim().is_empty() {
            for range in annotation.trim().split(',') {
                errors.extend(field_checks::legacy_cidr(&path, range.trim(), &HashSet::new()));
            }
        }
    }
    errors
}

/// Validates `allocateLoadBalancerNodePorts` and `loadBalancerClass`.
pub(super) fn validate_load_balancer(service: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let is_load_balancer = service.service_type() == LOAD_BALANCER;
    let path = FieldPath::new("spec").child("allocateLoadBalancerNodePorts");
    match (is_load_balancer, service.at("spec.allocateLoadBalancerNodePorts").is_some()) {
        (false, true) => errors.push(FieldError::forbidden(&path, ONLY_LOAD_BALANCER)),
        (true, false) => {
            errors.push(FieldError::required(&FieldPath::new("allocateLoadBalancerNodePorts"), ""));
        }
        _ => {}
    }
    errors.extend(validate_class(service));
    errors
}

/// Validates `loadBalancerClass`. An update also calls it alone, so its errors are reported twice.
pub(super) fn validate_class(service: &Value) -> ErrorList {
    let path = FieldPath::new("spec").child("loadBalancerClass");
    match (service.at("spec.loadBalancerClass").and_then(Value::as_str), service.service_type()) {
        (None, _) => ErrorList::new(),
        (Some(class), LOAD_BALANCER) => field_checks::invalid_each(&path, class, is_qualified_name(class)),
        (Some(_), _) => vec![FieldError::forbidden(&path, ONLY_LOAD_BALANCER)],
    }
}

/// Validates the traffic policies, the health check node port and the traffic distribution.
pub(super) fn validate_policies(service: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let spec = FieldPath::new("spec");
    let path = spec.child("externalTrafficPolicy");
    match (service.is_externally_accessible(), service.str_at("spec.externalTrafficPolicy")) {
        (false, "") | (true, "Cluster" | "Local") => {}
        (false, policy) => {
            let detail = "may only be set for externally-accessible services";
            errors.push(FieldError::invalid(&path, policy, detail).of_named_type());
        }
        (true, "") => errors.push(FieldError::required(&path, "")),
        (true, policy) => errors.push(FieldError::not_supported(&path, policy, &["Cluster", "Local"])),
    }
    let path = spec.child("healthCheckNodePort");
    match (service.needs_health_check_node_port(), service.health_check_node_port()) {
        (false, 0) => {}
        (false, port) => {
            let detail =
                "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
            errors.push(FieldError::invalid(&path, port, detail));
        }
        (true, 0) => errors.push(FieldError::required(&path, "")),
        (true, port) => errors.extend(validate_number(port, &path)),
    }
    let path = spec.child("internalTrafficPolicy");
    match service.at("spec.internalTrafficPolicy").and_then(Value::as_str) {
        Some("Cluster" | "Local") => {}
        Some(policy) => errors.push(FieldError::not_supported(&path, policy, &["Cluster", "Local"])),
        None if matches!(service.service_type(), CLUSTER_IP | NODE_PORT | LOAD_BALANCER) => {
            errors.push(FieldError::required(&path, ""));
        }
        None => {}
    }
    let supported = supported_distributions();
    match service.at("spec.trafficDistribution").and_then(Value::as_str) {
        Some(distribution) if !supported.contains(&distribution) => {
            let path = spec.child("trafficDistribution");
            errors.push(FieldError::not_supported(&path, distribution, supported).of_plain_text());
        }
        _ => {}
    }
    errors
}

/// How traffic may be distributed.
fn supported_distributions() -> &'static [&'static str] {
    match enabled(Gate::PreferSameTrafficDistribution) {
        true => &["PreferClose", "PreferSameZone", "PreferSameNode"],
        false => &["PreferClose"],
    }
}
