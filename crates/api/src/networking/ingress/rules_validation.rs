//! Validates hosts, paths and certificates of an ingress.

use super::backend::{NameRule, validate_backend};
use crate::{field_checks, rules};
use pintle_feature_gates::{Gate, enabled};
use pintle_go_forms::parse_ip_sloppy;
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, Value, ValueExt,
    validation::{
        is_dns1123_subdomain, is_wildcard_dns1123_subdomain, name_is_dns_label, name_is_dns_subdomain,
        name_is_dns1035_label,
    },
};
use pintle_registry::EmptyFields;

const INVALID_PATH_SEQUENCES: [&str; 5] = ["//", "/./", "/../", "%2f", "%2F"];
const INVALID_PATH_ENDS: [&str; 2] = ["/..", "/."];

/// The rule for the names of backends' services: the older one while the feature is off, unless the stored ingress has a
/// name that only the newer one allows.
fn service_names(old: Option<&Value>) -> NameRule {
    let is_newer = |backend: Option<&Value>| {
        backend.and_then(|backend| backend.at("service")).is_some_and(|service| {
            let name = service.str_at("name");
            name_is_dns_label(name, false).is_empty() && !name_is_dns1035_label(name, false).is_empty()
        })
    };
    let uses_newer = |old: &Value| {
        let rules = old.items_at("spec.rules").iter();
        let mut paths = rules.flat_map(|rule| rule.items_at("http.paths"));
        is_newer(old.at("spec.defaultBackend")) || paths.any(|path| is_newer(path.at("backend")))
    };
    match enabled(Gate::RelaxedServiceNameValidation) || old.is_some_and(uses_newer) {
        true => name_is_dns_label,
        false => name_is_dns1035_label,
    }
}

/// Validates the spec except for the class.
pub(super) fn validate_spec(
    ingress: &Value,
    allows_secret_name: bool,
    old: Option<&Value>,
    empty_fields: &EmptyFields,
) -> ErrorList {
    let mut errors = ErrorList::new();
    let names = service_names(old);
    let path = FieldPath::new("spec");
    let all = ingress.items_at("spec.rules");
    let default_backend = ingress.at("spec.defaultBackend");
    if all.is_empty() && default_backend.is_none() {
        let shown = empty_fields.value("spec.rules");
        let detail = "either `defaultBackend` or `rules` must be specified";
        errors.push(FieldError::invalid(&path, shown, detail));
    }
    if let Some(backend) = default_backend {
        errors.extend(validate_backend(backend, names, &path.child("defaultBackend")));
    }
    let allows_wildcard_rules = old.is_some_and(has_invalid_wildcard_rule);
    for (index, rule) in all.iter().enumerate() {
        errors.extend(validate_rule(rule, allows_wildcard_rules, names, &path.child("rules").index(index)));
    }
    for (index, tls) in ingress.items_at("spec.tls").iter().enumerate() {
        errors.extend(validate_tls(tls, allows_secret_name, &path.child("tls").index(index)));
    }
    errors
}

/// Validates a secret's name, which may be empty.
pub(super) fn validate_tls_secret_name(name: &str) -> Vec<String> {
    if name.is_empty() { Vec::new() } else { name_is_dns_subdomain(name, false) }
}

fn has_invalid_wildcard_rule(old: &Value) -> bool {
    let mut wildcards = old.items_at("spec.rules").iter().filter(|rule| rule.str_at("host").contains('*'));
    wildcards.any(|rule| !validate_http(rule, name_is_dns1035_label, &FieldPath::default()).is_empty())
}

fn validate_rule(rule: &Value, allows_wildcard_rule: bool, names: NameRule, path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    let (host, host_path) = (rule.str_at("host"), path.child("host"));
    let is_wildcard = host.contains('*');
    if !host.is_empty() {
        if parse_ip_sloppy(host).is_some() {
            errors.push(FieldError::invalid(&host_path, host, "must be a DNS name, not an IP address"));
        }
        errors.extend(field_checks::invalid_each(&host_path, host, host_messages(host)));
    }
    if !is_wildcard || !allows_wildcard_rule {
        errors.extend(validate_http(rule, names, path));
    }
    errors
}

fn host_messages(host: &str) -> Vec<String> {
    if host.contains('*') { is_wildcard_dns1123_subdomain(host) } else { is_dns1123_subdomain(host) }
}

fn validate_http(rule: &Value, names: NameRule, path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    let Some(http) = rule.at("http") else { return errors };
    let path = path.child("http").child("paths");
    let paths = http.items_at("paths");
    if paths.is_empty() {
        errors.push(FieldError::required(&path, ""));
    }
    for (index, http_path) in paths.iter().enumerate() {
        errors.extend(validate_path(http_path, names, &path.index(index)));
    }
    errors
}

fn validate_path(http_path: &Value, names: NameRule, field: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    let (path, path_field) = (http_path.str_at("path"), field.child("path"));
    let type_field = field.child("pathType");
    let not_absolute = || FieldError::invalid(&path_field, path, "must be an absolute path");
    match http_path.at("pathType").and_then(Value::as_str) {
        None => return vec![FieldError::required(&type_field, "pathType must be specified")],
        Some("Exact" | "Prefix") => {
            if !path.starts_with('/') {
                errors.push(not_absolute());
            }
            for sequence in INVALID_PATH_SEQUENCES.into_iter().filter(|sequence| path.contains(sequence)) {
                let detail = format!("must not contain '{sequence}'");
                errors.push(FieldError::invalid(&path_field, path, detail));
            }
            for end in INVALID_PATH_ENDS.into_iter().filter(|end| path.ends_with(end)) {
                errors.push(FieldError::invalid(&path_field, path, format!("cannot end with '{end}'")));
            }
        }
        Some("ImplementationSpecific") => {
            if !path.is_empty() && !path.starts_with('/') {
                errors.push(not_absolute());
            }
        }
        Some(other) => {
            let supported = ["Exact", "ImplementationSpecific", "Prefix"];
            errors.push(FieldError::not_supported(&type_field, other, &supported));
        }
    }
    errors.extend(validate_backend(rules::value_at(http_path, "backend"), names, &field.child("backend")));
    errors
}

fn validate_tls(tls: &Value, allows_secret_name: bool, path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    for (index, host) in field_checks::texts(tls.items_at("hosts")).enumerate() {
        let path = path.child("hosts").index(index);
        errors.extend(field_checks::invalid_each(&path, host, host_messages(host)));
    }
    let name = tls.str_at("secretName");
    if !allows_secret_name {
        let path = path.child("secretName");
        errors.extend(field_checks::invalid_each(&path, name, validate_tls_secret_name(name)));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    #[test]
    fn specs_are_checked() {
        let check = |spec: Value, expected: &[&str]| {
            let errors = validate_spec(&json!({"spec": spec}), false, None, &EmptyFields::default());
            assert_eq!(errors.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
        };
        let backend = json!({"service": {"name": "a", "port": {"number": 80}}});
        let rule = |path: Value| json!({"rules": [{"http": {"paths": [path]}}]});
        check(json!({"defaultBackend": backend}), &[]);
        check(
            json!({}),
            &["spec: Invalid value: null: either `defaultBackend` or `rules` must be specified"],
        );
        check(rule(json!({"path": "/a", "pathType": "Prefix", "backend": backend})), &[]);
        check(
            rule(json!({"path": "/", "backend": backend})),
            &["spec.rules[0].http.paths[0].pathType: Required value: pathType must be specified"],
        );
        check(
            rule(json!({"path": "a//b/..", "pathType": "Exact", "backend": backend})),
            &[
                r#"spec.rules[0].http.paths[0].path: Invalid value: "a//b/..": must be an absolute path"#,
                r#"spec.rules[0].http.paths[0].path: Invalid value: "a//b/..": must not contain '//'"#,
                r#"spec.rules[0].http.paths[0].path: Invalid value: "a//b/..": cannot end with '/..'"#,
            ],
        );
        check(
            rule(json!({"pathType": "Regex"})),
            &[
                r#"spec.rules[0].http.paths[0].pathType: Unsupported value: "Regex": supported values: "Exact", "ImplementationSpecific", "Prefix""#,
                r#"spec.rules[0].http.paths[0].backend: Invalid value: "": resource or service backend is required"#,
            ],
        );
        check(
            json!({"rules": [{"host": "10.1.2.3", "http": {}}]}),
            &[
                r#"spec.rules[0].host: Invalid value: "10.1.2.3": must be a DNS name, not an IP address"#,
                "spec.rules[0].http.paths: Required value",
            ],
        );
    }

    #[test]
    fn stored_wildcard_rules_may_stay() {
        let ingress = json!({"spec": {"rules": [{"host": "*.example.com", "http": {}}]}});
        assert_eq!(validate_spec(&ingress, false, None, &EmptyFields::default()).len(), 1);
        assert_eq!(validate_spec(&ingress, false, Some(&ingress), &EmptyFields::default()), []);
    }
}
