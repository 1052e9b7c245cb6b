//! Validates the backends of an ingress.

use crate::field_checks;
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, Value, ValueExt,
    validation::{is_dns1123_subdomain, is_valid_port_name, is_valid_port_num, validate_path_segment_name},
};

/// A rule for names, which may end in a dash if they are prefixes of names.
pub(super) type NameRule = fn(&str, bool) -> Vec<String>;

/// Validates a backend; the name of its service by `names`.
pub(super) fn validate_backend(backend: &Value, names: NameRule, path: &FieldPath) -> ErrorList {
    match (backend.at("resource"), backend.at("service")) {
        (Some(_), Some(_)) => {
            vec![FieldError::invalid(path, "", "cannot set both resource and service backends")]
        }
        (Some(resource), None) => validate_resource(resource, &path.child("resource")),
        (None, Some(service)) => validate_service(service, names, path),
        (None, None) => vec![FieldError::invalid(path, "", "resource or service backend is required")],
    }
}

/// Validates a reference to an object: an optional group, a kind and a name.
pub(in crate::networking) fn validate_resource(reference: &Value, path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    if let Some(group) = reference.at("apiGroup").and_then(Value::as_str) {
        let path = path.child("apiGroup");
        errors.extend(field_checks::invalid_each(&path, group, is_dns1123_subdomain(group)));
    }
    for member in ["kind", "name"] {
        let (value, path) = (reference.str_at(member), path.child(member));
        match value {
            "" => errors.push(FieldError::required(&path, "")),
            value => {
                let messages = validate_path_segment_name(value, false);
                errors.extend(field_checks::invalid_each(&path, value, messages));
            }
        }
    }
    errors
}

fn validate_service(service: &Value, names: NameRule, path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    let service_path = path.child("service");
    let (name, name_path) = (service.str_at("name"), service_path.child("name"));
    match name {
        "" => errors.push(FieldError::required(&name_path, "")),
        name => errors.extend(field_checks::invalid_each(&name_path, name, names(name, false))),
    }
    let port_path = service_path.child("port");
    match (service.str_at("port.name"), service.i64_at("port.number").unwrap_or_default()) {
        ("", 0) => errors.push(FieldError::required(path, "port name or number is required")),
        ("", number) => {
            for message in is_valid_port_num(number) {
                errors.push(FieldError::invalid(&port_path.child("number"), number, message));
            }
        }
        (name, 0) => {
            let path = port_path.child("name");
            errors.extend(field_checks::invalid_each(&path, name, is_valid_port_name(name)));
        }
        _ => errors.push(FieldError::invalid(path, "", "cannot set both port name & port number")),
    }
    errors
}
