//! The strategy of endpoint slices.

use crate::gated_fields::{GatedFields, drop_disabled};
use crate::{field_checks, ip_rules, rules};
use pintle_feature_gates::Gate;
use pintle_go_forms::parse_ip_sloppy;
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, Value, ValueExt,
    meta::ObjectMeta,
    validation::{
        is_dns1123_label, is_fully_qualified_domain_name, is_qualified_name, is_valid_ip,
        is_valid_label_value, name_is_dns_subdomain, semantically_equal, validate_immutable_text,
        validate_labels, warnings_for_ip,
    },
};
use pintle_registry::{RequestContext, Strategy};
use std::collections::HashSet;

const MAX_ENDPOINTS: usize = 1000;
const MAX_ADDRESSES: usize = 100;
const MAX_PORTS: usize = 20000;
const MAX_TOPOLOGY_LABELS: usize = 16;
const MAX_HINTS: usize = 8;

const HOSTNAME_LABEL: &str = "kubernetes.io/hostname";
const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
/// Controllers that write canonical addresses.
const CONTROLLERS: [&str; 2] =
    ["endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io"];

const GATED: &[GatedFields] =
    &[GatedFields { gates: &[Gate::PreferSameTrafficDistribution], fields: &["endpoints[].hints.forNodes"] }];

pub(super) struct EndpointSliceStrategy;

impl Strategy for EndpointSliceStrategy {
    fn set_defaults(&self, object: &mut Value) {
        for port in object.items_at_mut("ports") {
            port.set_default("name", "");
            port.set_default("protocol", "TCP");
        }
    }

    fn prepare_for_create(&self, _context: &RequestContext<'_>, object: &mut Value) {
        object.set_generation(1);
        drop_disabled(GATED, object, None);
        drop_topology(object, None);
    }

    fn validate(&self, _context: &RequestContext<'_>, object: &Value) -> ErrorList {
        validate(object, None)
    }

    fn warnings_on_create(&self, _context: &RequestContext<'_>, object: &Value) -> Vec<String> {
        let mut warnings = Vec::new();
        if object.str_at("addressType") == "FQDN" {
            warnings.push("spec.addressType: FQDN endpoints are deprecated".to_owned());
        }
        warnings.extend(address_warnings(object));
        warnings
    }

    fn prepare_for_update(&self, _context: &RequestContext<'_>, object: &mut Value, old: &Value) {
        // Topology is not compared: it is dropped below, as it was in the old object.
        let parts = ["addressType", "endpoints", "ports", "metadata.labels"];
        let is_changed = parts.into_iter().any(|path| rules::differs(object, old, path));
        rules::count_generation_if(object, old, is_changed);
        drop_disabled(GATED, object, Some(old));
        if rules::differs(object, old, "endpoints") {
            drop_topology(object, Some(old));
        }
    }

    fn validate_update(&self, _context: &RequestContext<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = validate(object, Some(old));
        let changed = validate_immutable_text(object, old, &FieldPath::new("addressType"));
        errors.extend(changed.into_iter().map(FieldError::of_named_type));
        errors
    }

    fn warnings_on_update(&self, _context: &RequestContext<'_>, object: &Value, _old: &Value) -> Vec<String> {
        address_warnings(object)
    }
}

/// Drops the topology, which `v1` does not have, except the node name that an older version kept there.
fn drop_topology(slice: &mut Value, old: Option<&Value>) {
    let topology_node = |endpoint: &Value| {
        let topology = endpoint.at("deprecatedTopology")?;
        topology.field(HOSTNAME_LABEL)?.as_str().map(str::to_owned)
    };
    let known: HashSet<String> =
        old.into_iter().flat_map(|old| old.items_at("endpoints")).filter_map(topology_node).collect();
    for endpoint in slice.items_at_mut("endpoints") {
        if let Some(node) = topology_node(endpoint)
            && endpoint.at("nodeName").is_none()
            && known.contains(&node)
            && name_is_dns_subdomain(&node, false).is_empty()
        {
            endpoint.set("nodeName", node);
        }
        endpoint.remove_at("deprecatedTopology");
    }
}

fn validate(slice: &Value, old: Option<&Value>) -> ErrorList {
    let mut errors = rules::metadata(slice, true);
    let types = ["FQDN", "IPv4", "IPv6"];
    let address_type = slice.str_at("addressType");
    errors.extend(field_checks::required_supported(address_type, &types, &FieldPath::new("addressType")));
    errors.extend(validate_ports(slice.items_at("ports")));
    let endpoints = slice.items_at("endpoints");
    let endpoint_errors = validate_endpoints(endpoints, address_type);
    // Ratcheting: values that older servers accepted are kept.
    let is_unchanged = old.is_some_and(|old| {
        semantically_equal(rules::value_at(old, "endpoints"), rules::value_at(slice, "endpoints"))
    });
    if !is_unchanged {
        errors.extend(endpoint_errors);
    }
    errors
}

fn validate_ports(ports: &[Value]) -> ErrorList {
    let path = FieldPath::new("ports");
    if ports.len() > MAX_PORTS {
        return vec![FieldError::too_many(&path, ports.len(), MAX_PORTS)];
    }
    let mut errors = ErrorList::new();
    let mut names: HashSet<&str> = HashSet::new();
    for (index, port) in ports.iter().enumerate() {
        let path = path.index(index);
        let (name, name_path) = (port.str_at("name"), path.child("name"));
        if !name.is_empty() {
            errors.extend(field_checks::invalid_each(&name_path, name, is_dns1123_label(name)));
        }
        if !names.insert(name) {
            errors.push(FieldError::duplicate(&name_path, name).of_named_type());
        }
        let protocol_path = path.child("protocol");
        match port.at("protocol").and_then(Value::as_str) {
            None => errors.push(FieldError::required(&protocol_path, "")),
            Some(protocol) => {
                let protocols = ["SCTP", "TCP", "UDP"];
                errors.extend(field_checks::supported(protocol, &protocols, &protocol_path));
            }
        }
        if let Some(protocol) = port.at("appProtocol").and_then(Value::as_str) {
            let path = path.child("appProtocol");
            errors.extend(field_checks::invalid_each(&path, protocol, is_qualified_name(protocol)));
        }
    }
    errors
}

fn validate_endpoints(endpoints: &[Value], address_type: &str) -> ErrorList {
    let path = FieldPath::new("endpoints");
    if endpoints.len() > MAX_ENDPOINTS {
        return vec![FieldError::too_many(&path, endpoints.len(), MAX_ENDPOINTS)];
    }
    let indexed = endpoints.iter().enumerate();
    indexed
        .flat_map(|(index, endpoint)| validate_endpoint(endpoint, address_type, &path.index(index)))
        .collect()
}

fn validate_endpoint(endpoint: &Value, address_type: &str, path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    let addresses = endpoint.items_at("addresses");
    let addresses_path = path.child("addresses");
    match addresses.len() {
        0 => errors.push(FieldError::required(&addresses_path, "must contain at least 1 address")),
        1..=MAX_ADDRESSES => {}
        many => errors.push(FieldError::too_many(&addresses_path, many, MAX_ADDRESSES)),
    }
    for (index, address) in field_checks::texts(addresses).enumerate() {
        errors.extend(validate_address(address, address_type, &addresses_path, index));
    }
    if let Some(node) = endpoint.at("nodeName").and_then(Value::as_str) {
        let path = path.child("nodeName");
        errors.extend(field_checks::invalid_each(&path, node, name_is_dns_subdomain(node, false)));
    }
    let topology = endpoint.map_at("deprecatedTopology");
    let topology_path = path.child("deprecatedTopology");
    if topology.len() > MAX_TOPOLOGY_LABELS {
        errors.push(FieldError::too_many(&topology_path, topology.len(), MAX_TOPOLOGY_LABELS));
    }
    errors.extend(validate_labels(topology, &topology_path));
    if let Some(hostname) = endpoint.at("hostname").and_then(Value::as_str) {
        let path = path.child("hostname");
        errors.extend(field_checks::invalid_each(&path, hostname, is_dns1123_label(hostname)));
    }
    errors.extend(validate_hints(endpoint, &path.child("hints")));
    errors
}

fn validate_address(address: &str, address_type: &str, list: &FieldPath, index: usize) -> ErrorList {
    let path = list.index(index);
    let (malformed, is_of_type) = match address_type {
        "FQDN" => return is_fully_qualified_domain_name(&path, address),
        "IPv4" => (
            field_checks::legacy_ip(&path, address, &HashSet::new()),
            parse_ip_sloppy(address).is_some_and(|address| address.is_ipv4()),
        ),
        "IPv6" => {
            (is_valid_ip(&path, address), parse_ip_sloppy(address).is_some_and(|address| address.is_ipv6()))
        }
        _ => return ErrorList::new(),
    };
    if !malformed.is_empty() {
        return malformed;
    }
    let mut errors = ErrorList::new();
    if !is_of_type {
        errors.push(FieldError::invalid(list, address, format!("must be an {address_type} address")));
    }
    errors.extend(ip_rules::validate_endpoint_ip(address, &path));
    errors
}

/// Validates hints for zones, then for nodes; too many of the former suppress the errors of the latter.
fn validate_hints(endpoint: &Value, path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    for list in ["forZones", "forNodes"] {
        let hints = endpoint.items_at(&format!("hints.{list}"));
        let path = path.child(list);
        if hints.len() > MAX_HINTS {
            errors.push(FieldError::too_many(&path, hints.len(), MAX_HINTS));
            return errors;
        }
        let mut names: HashSet<&str> = HashSet::new();
        for (index, hint) in hints.iter().enumerate() {
            let (name, path) = (hint.str_at("name"), path.index(index).child("name"));
            if !names.insert(name) {
                errors.push(FieldError::duplicate(&path, name));
            }
            let messages = match list {
                "forZones" => is_valid_label_value(name),
                _ => name_is_dns_subdomain(name, false),
            };
            errors.extend(field_checks::invalid_each(&path, name, messages));
        }
    }
    errors
}

fn address_warnings(slice: &Value) -> Vec<String> {
    let mut warnings = Vec::new();
    if slice.label(MANAGED_BY).is_some_and(|manager| CONTROLLERS.contains(&manager)) {
        return warnings;
    }
    for (index, endpoint) in slice.items_at("endpoints").iter().enumerate() {
        let path = FieldPath::new("endpoints").index(index).child("addresses");
        for (index, address) in field_checks::texts(endpoint.items_at("addresses")).enumerate() {
            warnings.extend(warnings_for_ip(&path.index(index), address));
        }
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_feature_gates::{EffectiveVersion, FeatureGates, MinorVersion, testing::override_gates};
    use pintle_machinery::json;
    use pintle_registry::testing::{MemoryRegistry, with_context};

    #[test]
    fn an_emulated_version_has_no_hints_for_nodes() {
        let _gates =
            override_gates(&FeatureGates::new(EffectiveVersion::emulating(MinorVersion::new(1, 33))));
        let given =
            json!({"endpoints": [{"hints": {"forNodes": [{"name": "n"}], "forZones": [{"name": "z"}]}}]});
        let mut slice = given.clone();
        drop_disabled(GATED, &mut slice, None);
        assert_eq!(slice, json!({"endpoints": [{"hints": {"forZones": [{"name": "z"}]}}]}));
        let mut slice = given.clone();
        drop_disabled(GATED, &mut slice, Some(&given));
        assert_eq!(slice, given);
    }

    #[test]
    fn slices_are_checked() {
        let check = |members: Value, expected: &[&str]| {
            let mut slice = json!({"metadata": {"name": "a", "namespace": "n"}, "addressType": "IPv4"});
            slice.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
            EndpointSliceStrategy.set_defaults(&mut slice);
            let errors = validate(&slice, None);
            assert_eq!(errors.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
        };
        check(json!({}), &[]);
        check(
            json!({"addressType": "IP"}),
            &[r#"addressType: Unsupported value: "IP": supported values: "FQDN", "IPv4", "IPv6""#],
        );
        check(
            json!({"endpoints": [{"addresses": ["fd00::1"]}, {}]}),
            &[
                r#"endpoints[0].addresses: Invalid value: "fd00::1": must be an IPv4 address"#,
                "endpoints[1].addresses: Required value: must contain at least 1 address",
            ],
        );
        check(
            json!({"addressType": "IPv6", "endpoints": [{"addresses": ["::1"]}]}),
            &[
                r#"endpoints[0].addresses[0]: Invalid value: "::1": may not be in the loopback range (127.0.0.0/8, ::1/128)"#,
            ],
        );
        check(
            json!({"ports": [{"port": 80}, {"port": 81, "protocol": "x"}]}),
            &[
                r#"ports[1].name: Duplicate value: """#,
                r#"ports[1].protocol: Unsupported value: "x": supported values: "SCTP", "TCP", "UDP""#,
            ],
        );
        check(
            json!({"endpoints": [{
                "addresses": ["10.1.0.1"], "hostname": "a.b",
                "hints": {"forZones": [{"name": "z"}, {"name": "z"}], "forNodes": [{"name": "A"}]}
            }]}),
            &[
                r#"endpoints[0].hostname: Invalid value: "a.b": must not contain dots"#,
                r#"endpoints[0].hints.forZones[1].name: Duplicate value: "z""#,
                "endpoints[0].hints.forNodes[0].name: Invalid value: \"A\": a lowercase RFC 1123 subdomain must \
                 consist of lower case alphanumeric characters, '-' or '.', and must start and end with an \
                 alphanumeric character (e.g. 'example.com', regex used for validation is \
                 '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
            ],
        );
    }

    #[test]
    fn labels_and_endpoints_count_the_generation_on() {
        let registry = MemoryRegistry::default();
        let old = json!({
            "metadata": {"generation": 2, "labels": {"a": "b"}},
            "endpoints": [{"addresses": ["10.0.0.1"], "deprecatedTopology": {HOSTNAME_LABEL: "n1"}}]
        });
        let check = |change: &dyn Fn(&mut Value), generation: i64| {
            let mut slice = old.clone();
            change(&mut slice);
            with_context(&registry, "n", false, |context| {
                EndpointSliceStrategy.prepare_for_update(context, &mut slice, &old);
            });
            assert_eq!(slice.generation(), generation);
            slice
        };
        check(&|_| {}, 2);
        check(&|slice| slice.set("metadata.annotations", json!({"x": "y"})), 2);
        check(&|slice| slice.set("metadata.labels", json!({"a": "c"})), 3);
        let change = |slice: &mut Value| {
            slice.items_at_mut("endpoints")[0].set("addresses", json!(["10.0.0.2"]));
        };
        let slice = check(&change, 3);
        assert_eq!(slice["endpoints"], json!([{"addresses": ["10.0.0.2"], "nodeName": "n1"}]));
    }
}
