//! Validates the DNS configuration, host aliases and hostname of a pod
//! (<https://kubernetes.io/docs/concepts/services-networking/dns-pod-service/>).

use crate::field_checks::{invalid_each, legacy_ip, texts};
use pintle_machinery::error_list::is_enough;
use pintle_machinery::validation::{is_dns1123_subdomain, is_dns1123_subdomain_with_underscore};
use pintle_machinery::{ErrorList, FieldError, FieldPath, Value, ValueExt};
use std::collections::HashSet;

/// Limits of resolvers on Linux: in items, and in bytes for lengths.
const MAX_NAMESERVERS: usize = 3;
const MAX_SEARCH_PATHS: usize = 32;
const MAX_SEARCH_LIST_CHARS: usize = 2048;
const MAX_HOSTNAME_LENGTH: usize = 64;

/// Validates `dnsConfig`, given the `dnsPolicy`.
pub(super) fn validate_config(spec: &Value, path: &FieldPath) -> ErrorList {
    let path = path.child("dnsConfig");
    let config = spec.at("dnsConfig");
    let nameservers = config.map(|config| config.items_at("nameservers")).unwrap_or_default();
    if spec.str_at("dnsPolicy") == "None" {
        if config.is_none() {
            let detail = "must provide `dnsConfig` when `dnsPolicy` is None";
            return vec![FieldError::required(&path, detail)];
        }
        if nameservers.is_empty() {
            let detail = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            return vec![FieldError::required(&path.child("nameservers"), detail)];
        }
    }
    let mut errors = ErrorList::new();
    let Some(config) = config else { return errors };
    let list = |field: &str| Value::Array(config.items_at(field).to_vec());
    let nameservers_path = path.child("nameservers");
    if nameservers.len() > MAX_NAMESERVERS {
        let detail = format!("must not have more than {MAX_NAMESERVERS} nameservers");
        errors.push(FieldError::invalid(&nameservers_path, list("nameservers"), detail));
    }
    for (index, nameserver) in texts(nameservers).enumerate() {
        if is_enough(&errors) {
            break;
        }
        errors.extend(legacy_ip(&nameservers_path.index(index), nameserver, &HashSet::new()));
    }
    let searches: Vec<&str> = texts(config.items_at("searches")).collect();
    let searches_path = path.child("searches");
    if searches.len() > MAX_SEARCH_PATHS {
        let detail = format!("must not have more than {MAX_SEARCH_PATHS} search paths");
        errors.push(FieldError::invalid(&searches_path, list("searches"), detail));
    }
    if searches.join(" ").len() > MAX_SEARCH_LIST_CHARS {
        let detail = format!(
            "must not have more than {MAX_SEARCH_LIST_CHARS} characters (including spaces) in the search list"
        );
        errors.push(FieldError::invalid(&searches_path, list("searches"), detail));
    }
    for (index, search) in searches.into_iter().enumerate().filter(|(_, search)| *search != ".") {
        let search = search.strip_suffix('.').unwrap_or(search);
        let messages = is_dns1123_subdomain_with_underscore(search);
        errors.extend(invalid_each(&searches_path.index(index), search, messages));
    }
    for (index, option) in config.items_at("options").iter().enumerate() {
        if is_enough(&errors) {
            break;
        }
        if option.str_at("name").is_empty() {
            errors.push(FieldError::required(&path.child("options").index(index), "must not be empty"));
        }
    }
    errors
}

/// Validates `hostAliases`.
pub(super) fn validate_host_aliases(aliases: &[Value], path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    for (index, alias) in aliases.iter().enumerate() {
        if is_enough(&errors) {
            break;
        }
        let path = path.index(index);
        errors.extend(legacy_ip(&path.child("ip"), alias.str_at("ip"), &HashSet::new()));
        for (index, hostname) in texts(alias.items_at("hostnames")).enumerate() {
            if is_enough(&errors) {
                break;
            }
            let path = path.child("hostnames").index(index);
            errors.extend(invalid_each(&path, hostname, is_dns1123_subdomain(hostname)));
        }
    }
    errors
}

/// Validates `hostnameOverride`.
pub(super) fn validate_hostname_override(spec: &Value, path: &FieldPath) -> ErrorList {
    let Some(hostname) = spec.at("hostnameOverride").and_then(Value::as_str) else { return ErrorList::new() };
    let path = path.child("hostnameOverride");
    let mut errors = ErrorList::new();
    for field in ["setHostnameAsFQDN", "hostNetwork"] {
        if spec.bool_at(field) {
            errors.push(FieldError::forbidden(&path, format!("may not be specified when {field} is true")));
        }
    }
    if hostname.len() > MAX_HOSTNAME_LENGTH {
        errors.push(FieldError::too_long(&path, MAX_HOSTNAME_LENGTH));
    }
    errors.extend(invalid_each(&path, hostname, is_dns1123_subdomain(hostname)));
    errors
}
