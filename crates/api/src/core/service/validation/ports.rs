//! Validates the ports of a service.

use crate::core::service::view::{CLUSTER_IP, Service, node_port};
use crate::{field_checks, rules};
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, Value, ValueExt,
    validation::{is_dns1123_label, is_qualified_name, is_valid_port_name, is_valid_port_num},
};
use std::collections::HashSet;

pub(super) const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

/// Validates each port, and the uniqueness of their names.
pub(super) fn validate(service: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let ports = service.ports();
    let mut names: HashSet<&str> = HashSet::new();
    for (index, port) in ports.iter().enumerate() {
        let path = FieldPath::new("spec").child("ports").index(index);
        let name = port.str_at("name");
        let name_path = path.child("name");
        if name.is_empty() && ports.len() > 1 {
            errors.push(FieldError::required(&name_path, ""));
        } else if !name.is_empty() {
            errors.extend(field_checks::invalid_each(&name_path, name, is_dns1123_label(name)));
            if !names.insert(name) {
                errors.push(FieldError::duplicate(&name_path, name));
            }
        }
        errors.extend(validate_number(port.i64_at("port").unwrap_or_default(), &path.child("port")));
        errors.extend(validate_protocol(port.str_at("protocol"), &path.child("protocol")));
        errors.extend(validate_target(rules::value_at(port, "targetPort"), &path.child("targetPort")));
        if let Some(app_protocol) = port.at("appProtocol").and_then(Value::as_str) {
            let path = path.child("appProtocol");
            errors.extend(field_checks::invalid_each(&path, app_protocol, is_qualified_name(app_protocol)));
        }
    }
    errors
}

/// Rejects duplicate ports and node ports of one protocol, and node ports of `ClusterIP` services.
pub(super) fn validate_numbers(service: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let path = FieldPath::new("spec").child("ports");
    let ports = || service.ports().iter().enumerate();
    if service.service_type() == CLUSTER_IP {
        for (index, _) in ports().filter(|(_, port)| node_port(port) != 0) {
            let path = path.index(index).child("nodePort");
            errors.push(FieldError::forbidden(&path, "may not be used when `type` is 'ClusterIP'"));
        }
    }
    let mut node_ports: HashSet<(&str, i64)> = HashSet::new();
    for (index, port) in ports().filter(|(_, port)| node_port(port) != 0) {
        let key = (port.str_at("protocol"), node_port(port));
        if !node_ports.insert(key) {
            errors.push(FieldError::duplicate(&path.index(index).child("nodePort"), key.1));
        }
    }
    let mut numbers: HashSet<(&str, i64)> = HashSet::new();
    for (index, port) in ports() {
        let key = (port.str_at("protocol"), port.i64_at("port").unwrap_or_default());
        if !numbers.insert(key) {
            let shown = format!(
                r#"{{"Name":"","Protocol":{},"AppProtocol":null,"Port":{},"TargetPort":0,"NodePort":0}}"#,
                Value::from(key.0),
                key.1
            );
            let value = pintle_machinery::json!({"Protocol": key.0, "Port": key.1});
            errors.push(FieldError::duplicate(&path.index(index), value).shown_as(shown));
        }
    }
    errors
}

pub(super) fn validate_number(port: i64, path: &FieldPath) -> ErrorList {
    let messages = is_valid_port_num(port).into_iter();
    messages.map(|message| FieldError::invalid(path, port, message)).collect()
}

pub(super) fn validate_protocol(protocol: &str, path: &FieldPath) -> ErrorList {
    match protocol {
        "" => vec![FieldError::required(path, "")],
        protocol if PROTOCOLS.contains(&protocol) => ErrorList::new(),
        protocol => vec![FieldError::not_supported(path, protocol, &PROTOCOLS)],
    }
}

fn validate_target(target: &Value, path: &FieldPath) -> ErrorList {
    match target.as_str() {
        Some(name) => field_checks::invalid_each(path, name, is_valid_port_name(name)),
        None => validate_number(target.as_i64().unwrap_or_default(), path),
    }
}
