//! Validates a spec, in the order of the API's checks.

use super::containers::{self, Surroundings};
use super::containers_of::containers_with_path;
use super::{
    PodValidationOptions, affinity, dns, privileged, resource_claims, resources, security_context,
    tolerations, topology_spread, volumes, windows,
};
use crate::field_checks::{invalid_each, required_supported};
use pintle_feature_gates::{Gate, enabled};
use pintle_machinery::validation::{
    inclusive_range_error, is_dns1123_label, is_dns1123_subdomain, is_qualified_name, validate_labels,
};
use pintle_machinery::{ErrorList, FieldError, FieldPath, Value, ValueExt};
use std::collections::{HashMap, HashSet};

/// Validates a spec; `metadata` is that of the pod, `None` for a template.
pub fn validate(
    spec: &Value,
    metadata: Option<&Value>,
    path: &FieldPath,
    options: &PodValidationOptions,
) -> ErrorList {
    let mut errors = ErrorList::new();
    if spec.at("terminationGracePeriodSeconds").is_none() {
        errors.push(FieldError::required(&path.child("terminationGracePeriodSeconds"), ""));
    }
    let pod_name = metadata.map_or("", |metadata| metadata.str_at("name"));
    let (volumes, volume_errors) =
        volumes::validate(spec.items_at("volumes"), pod_name, options, &path.child("volumes"));
    errors.extend(volume_errors);
    let claims = spec.items_at("resourceClaims");
    errors.extend(resource_claims::validate(claims, metadata, &path.child("resourceClaims")));
    let around = Surroundings { spec, volumes, claim_names: resource_claims::names(spec), options };
    errors.extend(containers::validate(&around, path));
    if enabled(Gate::PodLevelResources) {
        errors.extend(resources::validate_pod(spec, &around.claim_names, options, path));
    }
    errors.extend(validate_host_network_ports(spec, options, path));
    errors.extend(required_supported(
        spec.str_at("restartPolicy"),
        &["Always", "OnFailure", "Never"],
        &path.child("restartPolicy"),
    ));
    errors.extend(required_supported(
        spec.str_at("dnsPolicy"),
        &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"],
        &path.child("dnsPolicy"),
    ));
    errors.extend(validate_labels(spec.map_at("nodeSelector"), &path.child("nodeSelector")));
    errors.extend(security_context::validate_pod(spec, options, path));
    errors.extend(affinity::validate(spec, options, path));
    errors.extend(dns::validate_config(spec, path));
    errors.extend(validate_gates(spec, path));
    let constraints = spec.items_at("topologySpreadConstraints");
    let constraints_path = path.child("topologySpreadConstraints");
    errors.extend(topology_spread::validate(constraints, options, &constraints_path));
    errors.extend(windows::validate_host_processes(spec, privileged::is_allowed(), path));
    errors.extend(validate_user_namespace(spec, options, path));
    errors.extend(dns::validate_hostname_override(spec, path));
    errors.extend(validate_scalars(spec, options, path));
    errors.extend(windows::validate_os(spec, path));
    errors.extend(validate_scheduling_group(spec, path));
    errors.extend(validate_env_files(spec, path));
    errors
}

/// Validates that host ports equal container ports in the host network. Templates may omit the host port.
fn validate_host_network_ports(spec: &Value, options: &PodValidationOptions, path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    if !spec.bool_at("hostNetwork") {
        return errors;
    }
    for (index, container) in spec.items_at("containers").iter().enumerate() {
        let ports_path = path.child("containers").index(index).child("ports");
        for (index, port) in container.items_at("ports").iter().enumerate() {
            let host_port = port.i64_at("hostPort").unwrap_or_default();
            let container_port = port.i64_at("containerPort").unwrap_or_default();
            if host_port != container_port && (options.resource_is_pod || host_port != 0) {
                let path = ports_path.index(index).child("hostPort");
                let detail = "must match `containerPort` when `hostNetwork` is true";
                errors.push(FieldError::invalid(&path, host_port, detail));
            }
        }
    }
    errors
}

fn validate_gates(spec: &Value, path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    for (index, gate) in spec.items_at("readinessGates").iter().enumerate() {
        let path = path.child("readinessGates").index(index).child("conditionType");
        let condition_type = gate.str_at("conditionType");
        errors.extend(invalid_each(&path, condition_type, is_qualified_name(condition_type)));
    }
    let mut seen = HashSet::new();
    for (index, gate) in spec.items_at("schedulingGates").iter().enumerate() {
        let path = path.child("schedulingGates").index(index);
        let name = gate.str_at("name");
        errors.extend(invalid_each(&path, name, is_qualified_name(name)));
        if !seen.insert(name) {
            errors.push(FieldError::duplicate(&path, name));
        }
    }
    errors
}

/// Rejects other host namespaces in a pod with its own user namespace.
fn validate_user_namespace(spec: &Value, options: &PodValidationOptions, path: &FieldPath) -> ErrorList {
    const DETAIL: &str = "when `hostUsers` is false";
    let mut errors = ErrorList::new();
    if spec.at("hostUsers").and_then(Value::as_bool) != Some(false) {
        return errors;
    }
    if !options.allow_user_namespaces_with_host_network && spec.bool_at("hostNetwork") {
        errors.push(FieldError::forbidden(&path.child("hostNetwork"), DETAIL));
    }
    for (field, shown) in [("hostPID", "HostPID"), ("hostIPC", "HostIPC")] {
        if spec.bool_at(field) {
            errors.push(FieldError::forbidden(&path.child(shown), DETAIL));
        }
    }
    if !options.allow_user_namespaces_with_volume_devices {
        for (_, path, container) in containers_with_path(spec, path) {
            if !container.items_at("volumeDevices").is_empty() {
                errors.push(FieldError::forbidden(&path.child("volumeDevices"), DETAIL));
            }
        }
    }
    errors
}

fn validate_scalars(spec: &Value, options: &PodValidationOptions, path: &FieldPath) -> ErrorList {
    type Check = fn(&str) -> Vec<String>;
    let name = |field: &str, check: Check| {
        let value = spec.str_at(field);
        let messages = if value.is_empty() { Vec::new() } else { check(value) };
        invalid_each(&path.child(field), value, messages)
    };
    let mut errors = name("serviceAccountName", is_dns1123_subdomain);
    errors.extend(name("nodeName", is_dns1123_subdomain));
    if let Some(seconds) = spec.i64_at("activeDeadlineSeconds") {
        let max = i64::from(i32::MAX);
        if !(1..=max).contains(&seconds) {
            let path = path.child("activeDeadlineSeconds");
            errors.push(FieldError::invalid(&path, seconds, inclusive_range_error(1, max)));
        }
    }
    errors.extend(name("hostname", is_dns1123_label));
    errors.extend(name("subdomain", is_dns1123_label));
    let list = spec.items_at("tolerations");
    errors.extend(tolerations::validate(list, options, &path.child("tolerations")));
    errors.extend(dns::validate_host_aliases(spec.items_at("hostAliases"), &path.child("hostAliases")));
    errors.extend(name("priorityClassName", is_dns1123_subdomain));
    if let Some(class) = spec.at("runtimeClassName").and_then(Value::as_str) {
        errors.extend(invalid_each(&path.child("runtimeClassName"), class, is_dns1123_subdomain(class)));
    }
    if spec.at("preemptionPolicy").is_some() {
        errors.extend(required_supported(
            spec.str_at("preemptionPolicy"),
            &["PreemptLowerPriority", "Never"],
            &path.child("preemptionPolicy"),
        ));
    }
    if let Some(overhead) = spec.at("overhead") {
        errors.extend(resources::validate_overhead(overhead, options, &path.child("overhead")));
    }
    errors
}

fn validate_scheduling_group(spec: &Value, path: &FieldPath) -> ErrorList {
    let Some(group) = spec.at("schedulingGroup") else { return ErrorList::new() };
    let path = path.child("schedulingGroup").child("podGroupName");
    match group.at("podGroupName").and_then(Value::as_str) {
        Some(name) => invalid_each(&path, name, is_dns1123_subdomain(name)),
        None => vec![FieldError::invalid(&path, Value::Null, "must specify one of: `podGroupName`")],
    }
}

/// Validates the volumes of files with environment variables: they must be `emptyDir` volumes of the pod.
fn validate_env_files(spec: &Value, path: &FieldPath) -> ErrorList {
    let volumes: HashMap<&str, &Value> =
        spec.items_at("volumes").iter().map(|volume| (volume.str_at("name"), volume)).collect();
    let mut errors = ErrorList::new();
    for (_, path, container) in containers_with_path(spec, path) {
        for (index, variable) in container.items_at("env").iter().enumerate() {
            let Some(file) = variable.at("valueFrom.fileKeyRef") else { continue };
            let name = file.str_at("volumeName");
            let path =
                path.child("env").index(index).child("valueFrom").child("fileKeyRef").child("volumeName");
            match volumes.get(name) {
                None => errors.push(FieldError::not_found(&path, name)),
                Some(volume) if volume.at("emptyDir").is_none() => {
                    let detail = "referenced volume must be of type emptyDir";
                    errors.push(FieldError::invalid(&path, name, detail));
                }
                Some(_) => {}
            }
        }
    }
    errors
}
