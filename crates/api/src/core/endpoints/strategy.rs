//! The strategy of endpoints.

use crate::{field_checks, ip_rules, rules};
use pintle_machinery::error_list::is_enough;
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, Value, ValueExt,
    meta::ObjectMeta,
    validation::{
        is_dns1123_label, is_qualified_name, is_valid_port_num, name_is_dns_subdomain, semantically_equal,
        warnings_for_ip,
    },
};
use pintle_registry::{RequestContext, Strategy};
use std::collections::HashSet;

/// The label of endpoints with canonical addresses from a controller.
const MANAGED_BY: &str = "endpoints.kubernetes.io/managed-by";
const CONTROLLER: &str = "endpoint-controller";

pub(super) struct EndpointsStrategy;

impl Strategy for EndpointsStrategy {
    fn set_defaults(&self, object: &mut Value) {
        for subset in object.items_at_mut("subsets") {
            for port in subset.items_at_mut("ports") {
                if port.str_at("protocol").is_empty() {
                    port.set("protocol", "TCP");
                }
            }
        }
    }

    fn validate(&self, _context: &RequestContext<'_>, object: &Value) -> ErrorList {
        validate(object, None)
    }

    fn warnings_on_create(&self, _context: &RequestContext<'_>, object: &Value) -> Vec<String> {
        warnings(object)
    }

    fn validate_update(&self, _context: &RequestContext<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = rules::metadata_update(object, old);
        errors.extend(validate(object, Some(old)));
        errors
    }

    fn warnings_on_update(&self, _context: &RequestContext<'_>, object: &Value, _old: &Value) -> Vec<String> {
        warnings(object)
    }

    fn allow_create_on_update(&self) -> bool {
        true
    }
}

fn validate(endpoints: &Value, old: Option<&Value>) -> ErrorList {
    let mut errors = rules::metadata(endpoints, true);
    let subset_errors = validate_subsets(endpoints.items_at("subsets"));
    // Ratcheting: values that older servers accepted are kept.
    let is_unchanged = old.is_some_and(|old| {
        semantically_equal(rules::value_at(old, "subsets"), rules::value_at(endpoints, "subsets"))
    });
    if !is_unchanged {
        errors.extend(subset_errors);
    }
    errors
}

fn validate_subsets(subsets: &[Value]) -> ErrorList {
    let mut errors = ErrorList::new();
    for (index, subset) in subsets.iter().enumerate() {
        if is_enough(&errors) {
            break;
        }
        let path = FieldPath::new("subsets").index(index);
        let lists = ["addresses", "notReadyAddresses"];
        if lists.iter().all(|list| subset.items_at(list).is_empty()) {
            let detail = "must specify `addresses` or `notReadyAddresses`";
            errors.push(FieldError::required(&path, detail));
        }
        for list in lists {
            for (index, address) in subset.items_at(list).iter().enumerate() {
                errors.extend(validate_address(address, &path.child(list).index(index)));
            }
        }
        let ports = subset.items_at("ports");
        for (index, port) in ports.iter().enumerate() {
            if is_enough(&errors) {
                break;
            }
            errors.extend(validate_port(port, ports.len() > 1, &path.child("ports").index(index)));
        }
    }
    errors
}

fn validate_address(address: &Value, path: &FieldPath) -> ErrorList {
    let ip = address.str_at("ip");
    let mut errors = field_checks::legacy_ip(&path.child("ip"), ip, &HashSet::new());
    let hostname = address.str_at("hostname");
    if !hostname.is_empty() {
        let path = path.child("hostname");
        errors.extend(field_checks::invalid_each(&path, hostname, is_dns1123_label(hostname)));
    }
    if let Some(node) = address.at("nodeName").and_then(Value::as_str) {
        let path = path.child("nodeName");
        errors.extend(field_checks::invalid_each(&path, node, name_is_dns_subdomain(node, false)));
    }
    errors.extend(ip_rules::validate_endpoint_ip(ip, &path.child("ip")));
    errors
}

fn validate_port(port: &Value, requires_name: bool, path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    let (name, name_path) = (port.str_at("name"), path.child("name"));
    if !name.is_empty() {
        errors.extend(field_checks::invalid_each(&name_path, name, is_dns1123_label(name)));
    } else if requires_name {
        errors.push(FieldError::required(&name_path, ""));
    }
    let number = port.i64_at("port").unwrap_or_default();
    for message in is_valid_port_num(number) {
        errors.push(FieldError::invalid(&path.child("port"), number, message));
    }
    let protocols = ["SCTP", "TCP", "UDP"];
    errors.extend(field_checks::required_supported(
        port.str_at("protocol"),
        &protocols,
        &path.child("protocol"),
    ));
    if let Some(protocol) = port.at("appProtocol").and_then(Value::as_str) {
        let path = path.child("appProtocol");
        errors.extend(field_checks::invalid_each(&path, protocol, is_qualified_name(protocol)));
    }
    errors
}

fn warnings(endpoints: &Value) -> Vec<String> {
    let mut warnings = Vec::new();
    if endpoints.label(MANAGED_BY) == Some(CONTROLLER) {
        return warnings;
    }
    for (index, subset) in endpoints.items_at("subsets").iter().enumerate() {
        for list in ["addresses", "notReadyAddresses"] {
            for (address_index, address) in subset.items_at(list).iter().enumerate() {
                let path = FieldPath::new("subsets").index(index).child(list).index(address_index);
                warnings.extend(warnings_for_ip(&path.child("ip"), address.str_at("ip")));
            }
        }
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    #[test]
    fn subsets_are_checked() {
        let check = |subset: Value, expected: &[&str]| {
            let mut endpoints = json!({"subsets": [subset]});
            EndpointsStrategy.set_defaults(&mut endpoints);
            let errors = validate_subsets(endpoints.items_at("subsets"));
            assert_eq!(errors.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
        };
        check(json!({"addresses": [{"ip": "10.1.0.4"}]}), &[]);
        check(
            json!({"ports": [{"port": 80}]}),
            &["subsets[0]: Required value: must specify `addresses` or `notReadyAddresses`"],
        );
        check(
            json!({"notReadyAddresses": [{"ip": "nope", "hostname": "a.b"}]}),
            &[
                r#"subsets[0].notReadyAddresses[0].ip: Invalid value: "nope": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"#,
                r#"subsets[0].notReadyAddresses[0].hostname: Invalid value: "a.b": must not contain dots"#,
                r#"subsets[0].notReadyAddresses[0].ip: Invalid value: "nope": must be a valid IP address"#,
            ],
        );
        check(
            json!({"addresses": [{"ip": "10.1.0.1"}], "ports": [{"port": 80}, {"name": "a", "protocol": "X"}]}),
            &[
                "subsets[0].ports[0].name: Required value",
                "subsets[0].ports[1].port: Invalid value: 0: must be between 1 and 65535, inclusive",
                r#"subsets[0].ports[1].protocol: Unsupported value: "X": supported values: "SCTP", "TCP", "UDP""#,
            ],
        );
    }

    #[test]
    fn unchanged_subsets_may_stay() {
        let endpoints = json!({
            "metadata": {"name": "a", "namespace": "n"}, "subsets": [{"addresses": [{"ip": "010.0.0.1"}]}]
        });
        assert_eq!(validate(&endpoints, None).len(), 1);
        assert_eq!(validate(&endpoints, Some(&endpoints)), []);
        assert_eq!(
            warnings(&endpoints),
            [r#"subsets[0].addresses[0].ip: non-standard IP address "010.0.0.1" is invalid: use "10.0.0.1""#]
        );
    }
}
