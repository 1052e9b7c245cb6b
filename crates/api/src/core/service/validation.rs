//! Validates a service.

mod addresses;
mod ports;
mod traffic;
mod update;

pub(super) use addresses::validate_cluster_ips;

use super::affinity;
use super::view::{CLUSTER_IP, EXTERNAL_NAME, LOAD_BALANCER, NODE_PORT, Service};
use crate::{field_checks, ip_rules, rules};
use pintle_feature_gates::{Gate, enabled};
use pintle_go_forms::parse_ip_sloppy;
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, Value, ValueExt,
    meta::ObjectMeta,
    validation::{
        is_dns1123_subdomain, name_is_dns_label, name_is_dns1035_label, validate_labels, validate_object_meta,
    },
};
use std::collections::HashSet;

const TOPOLOGY_HINTS: &str = "service.kubernetes.io/topology-aware-hints";
const TOPOLOGY_MODE: &str = "service.kubernetes.io/topology-mode";

pub(super) fn validate_create(service: &Value) -> ErrorList {
    let names = match enabled(Gate::RelaxedServiceNameValidation) {
        true => name_is_dns_label,
        false => name_is_dns1035_label,
    };
    let mut errors = validate_object_meta(service, true, names, &FieldPath::new("metadata"));
    errors.extend(validate(service, None));
    errors
}

pub(super) fn validate_update(service: &Value, old: &Value) -> ErrorList {
    let mut errors = rules::metadata_update(service, old);
    errors.extend(update::validate_transition(service, old));
    errors.extend(validate(service, Some(old)));
    errors
}

pub(super) fn validate_status_update(service: &Value, old: &Value) -> ErrorList {
    let mut errors = rules::metadata_update(service, old);
    let path = FieldPath::new("status").child("loadBalancer").child("ingress");
    let ingress = service.items_at("status.loadBalancer.ingress");
    if service.service_type() != LOAD_BALANCER && !ingress.is_empty() {
        errors.push(FieldError::forbidden(&path, "may only be used when `spec.type` is 'LoadBalancer'"));
        return errors;
    }
    let old_ips: HashSet<&str> =
        old.items_at("status.loadBalancer.ingress").iter().map(|ingress| ingress.str_at("ip")).collect();
    for (index, ingress) in ingress.iter().enumerate() {
        let path = path.index(index);
        errors.extend(validate_ingress_ip(ingress, &old_ips, &path));
        errors.extend(validate_ingress_hostname(ingress, &path));
    }
    errors
}

fn validate_ingress_ip(ingress: &Value, old_ips: &HashSet<&str>, path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    let ip = ingress.str_at("ip");
    if !ip.is_empty() {
        errors.extend(field_checks::legacy_ip(&path.child("ip"), ip, old_ips));
    }
    let mode_path = path.child("ipMode");
    match ingress.at("ipMode").and_then(Value::as_str) {
        None if ip.is_empty() => {}
        None => errors.push(FieldError::required(&mode_path, "must be specified when `ip` is set")),
        Some(_) if ip.is_empty() => {
            errors.push(FieldError::forbidden(&mode_path, "may not be specified when `ip` is not set"));
        }
        Some("VIP" | "Proxy") => {}
        Some(mode) => errors.push(FieldError::not_supported(&mode_path, mode, &["Proxy", "VIP"])),
    }
    errors
}

/// Validates the hostname of a load balancer's ingress, for services and ingresses.
pub(crate) fn validate_ingress_hostname(ingress: &Value, path: &FieldPath) -> ErrorList {
    let hostname = ingress.str_at("hostname");
    if hostname.is_empty() {
        return ErrorList::new();
    }
    let path = path.child("hostname");
    let mut errors = field_checks::invalid_each(&path, hostname, is_dns1123_subdomain(hostname));
    if parse_ip_sloppy(hostname).is_some() {
        errors.push(FieldError::invalid(&path, hostname, "must be a DNS name, not an IP address"));
    }
    errors
}

fn validate(service: &Value, old: Option<&Value>) -> ErrorList {
    let spec = FieldPath::new("spec");
    let mut errors = validate_topology(service);
    if service.ports().is_empty() && !service.is_headless() && service.service_type() != EXTERNAL_NAME {
        errors.push(FieldError::required(&spec.child("ports"), ""));
    }
    errors.extend(validate_for_type(service, &spec));
    errors.extend(ports::validate(service));
    errors.extend(validate_labels(service.map_at("spec.selector"), &spec.child("selector")));
    errors.extend(affinity::validate(service));
    errors.extend(validate_cluster_ips(service, old));
    errors.extend(validate_external_ips(service, old));
    errors.extend(validate_type(service, &spec));
    errors.extend(ports::validate_numbers(service));
    errors.extend(traffic::validate_source_ranges(service, old));
    errors.extend(traffic::validate_load_balancer(service));
    errors.extend(traffic::validate_policies(service));
    errors
}

fn validate_topology(service: &Value) -> ErrorList {
    match (service.annotation(TOPOLOGY_MODE), service.annotation(TOPOLOGY_HINTS)) {
        (Some(mode), Some(hints)) if mode != hints => {
            let path = FieldPath::new("metadata").child("annotations").key(TOPOLOGY_MODE);
            let detail = format!("must match annotations[{TOPOLOGY_HINTS}] when both are specified");
            vec![FieldError::invalid(&path, mode, detail)]
        }
        _ => ErrorList::new(),
    }
}

fn validate_for_type(service: &Value, spec: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    match service.service_type() {
        kind @ (LOAD_BALANCER | NODE_PORT) if service.is_headless() => {
            let detail = format!("may not be set to 'None' for {kind} services");
            errors.push(FieldError::invalid(&spec.child("clusterIPs").index(0), "None", detail));
        }
        EXTERNAL_NAME => {
            let unwanted = [
                (!service.cluster_ips().is_empty(), "clusterIPs"),
                (!service.ip_families().is_empty(), "ipFamilies"),
                (service.ip_family_policy().is_some(), "ipFamilyPolicy"),
            ];
            for (_, field) in unwanted.into_iter().filter(|(is_set, _)| *is_set) {
                let detail = "may not be set for ExternalName services";
                errors.push(FieldError::forbidden(&spec.child(field), detail));
            }
            let path = spec.child("externalName");
            let name = service.str_at("spec.externalName");
            // A trailing dot marks a fully qualified name.
            match name.strip_suffix('.').unwrap_or(name) {
                "" => errors.push(FieldError::required(&path, "")),
                name => errors.extend(field_checks::invalid_each(&path, name, is_dns1123_subdomain(name))),
            }
        }
        _ => {}
    }
    errors
}

fn validate_type(service: &Value, spec: &FieldPath) -> ErrorList {
    let path = spec.child("type");
    match service.service_type() {
        "" => vec![FieldError::required(&path, "")],
        CLUSTER_IP | NODE_PORT | LOAD_BALANCER | EXTERNAL_NAME => ErrorList::new(),
        other => {
            let supported = [CLUSTER_IP, EXTERNAL_NAME, LOAD_BALANCER, NODE_PORT];
            vec![FieldError::not_supported(&path, other, &supported)]
        }
    }
}

fn validate_external_ips(service: &Value, old: Option<&Value>) -> ErrorList {
    let mut errors = ErrorList::new();
    let old_ips = rules::value_at(old.unwrap_or(&Value::Null), "spec.externalIPs");
    let old_ips: HashSet<&str> = old_ips.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let path = FieldPath::new("spec").child("externalIPs");
    for (index, ip) in service.items_at("spec.externalIPs").iter().filter_map(Value::as_str).enumerate() {
        let path = path.index(index);
        let malformed = field_checks::legacy_ip(&path, ip, &old_ips);
        match malformed.is_empty() {
            true => errors.extend(ip_rules::validate_endpoint_ip(ip, &path)),
            false => errors.extend(malformed),
        }
    }
    errors
}

#[cfg(test)]
mod tests;
