//! Validates environment variables
//! (<https://kubernetes.io/docs/tasks/inject-data-application/define-environment-variable-container/>).

use super::field_reference::{self, Place};
use super::paths;
use crate::field_checks::invalid_each;
use pintle_feature_gates::{Gate, enabled};
use pintle_machinery::error_list::is_enough;
use pintle_machinery::validation::{
    is_config_map_key, is_dns1123_label, is_dns1123_subdomain, is_relaxed_env_var_name, name_is_dns_subdomain,
};
use pintle_machinery::{ErrorList, FieldError, FieldPath, Value, ValueExt};

/// Validates `env`.
pub(super) fn validate_env(variables: &[Value], path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    for (index, variable) in variables.iter().enumerate() {
        if is_enough(&errors) {
            break;
        }
        let path = path.index(index);
        let name = variable.str_at("name");
        if name.is_empty() {
            errors.push(FieldError::required(&path.child("name"), ""));
        } else {
            errors.extend(invalid_each(&path.child("name"), name, is_relaxed_env_var_name(name)));
        }
        if let Some(source) = variable.at("valueFrom") {
            let has_value = !variable.str_at("value").is_empty();
            errors.extend(validate_source(source, has_value, &path.child("valueFrom")));
        }
    }
    errors
}

fn validate_source(source: &Value, has_value: bool, path: &FieldPath) -> ErrorList {
    type Check = fn(&Value, &FieldPath) -> ErrorList;
    let sources: [(&str, Check); 5] = [
        ("fieldRef", |source, path| field_reference::validate(source, Place::Environment, path)),
        ("resourceFieldRef", |source, path| {
            field_reference::validate_resource(source, Place::Environment, path)
        }),
        ("configMapKeyRef", validate_key),
        ("secretKeyRef", validate_key),
        ("fileKeyRef", validate_file_key),
    ];
    let mut errors = ErrorList::new();
    let mut count = 0;
    for (field, check) in sources {
        if let Some(source) = source.at(field) {
            count += 1;
            errors.extend(check(source, &path.child(field)));
        }
    }
    let detail = match count {
        0 if enabled(Gate::EnvFiles) => {
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        }
        0 => "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`",
        _ if has_value => "may not be specified when `value` is not empty",
        1 => return errors,
        _ => "may not have more than one field specified at a time",
    };
    errors.push(FieldError::invalid(path, "", detail));
    errors
}

fn validate_key(source: &Value, path: &FieldPath) -> ErrorList {
    let (name, key) = (source.str_at("name"), source.str_at("key"));
    let mut errors = invalid_each(&path.child("name"), name, is_dns1123_subdomain(name));
    if key.is_empty() {
        errors.push(FieldError::required(&path.child("key"), ""));
    } else {
        errors.extend(invalid_each(&path.child("key"), key, is_config_map_key(key)));
    }
    errors
}

fn validate_file_key(source: &Value, path: &FieldPath) -> ErrorList {
    type Check = fn(&str, &FieldPath) -> ErrorList;
    let fields: [(&str, Check); 3] = [
        ("key", |key, path| invalid_each(path, key, is_relaxed_env_var_name(key))),
        ("volumeName", |name, path| invalid_each(path, name, is_dns1123_label(name))),
        ("path", paths::validate_no_backsteps),
    ];
    let mut errors = ErrorList::new();
    for (field, check) in fields {
        match source.str_at(field) {
            "" => errors.push(FieldError::required(&path.child(field), "")),
            text => errors.extend(check(text, &path.child(field))),
        }
    }
    errors
}

/// Validates `envFrom`.
pub(super) fn validate_env_from(sources: &[Value], path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    for (index, source) in sources.iter().enumerate() {
        if is_enough(&errors) {
            break;
        }
        let item_path = path.index(index);
        let prefix = source.str_at("prefix");
        if !prefix.is_empty() {
            errors.extend(invalid_each(&item_path.child("prefix"), prefix, is_relaxed_env_var_name(prefix)));
        }
        let mut count = 0;
        for field in ["configMapRef", "secretRef"] {
            let Some(reference) = source.at(field) else { continue };
            count += 1;
            let path = item_path.child(field).child("name");
            match reference.str_at("name") {
                "" => errors.push(FieldError::required(&path, "")),
                name => errors.extend(invalid_each(&path, name, name_is_dns_subdomain(name, true))),
            }
        }
        let detail = match count {
            1 => continue,
            0 => "must specify one of: `configMapRef` or `secretRef`",
            _ => "may not have more than one field specified at a time",
        };
        // As in the reference, the error has the path of the list.
        errors.push(FieldError::invalid(path, "", detail));
    }
    errors
}
