//! The strategy of network policies.

use crate::{field_checks, rules};
use pintle_go_forms::Cidr;
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, Value, ValueExt, json,
    meta::ObjectMeta,
    validation::{
        LabelSelectorOptions, is_valid_port_name, is_valid_port_num, validate_label_selector,
        warnings_for_cidr,
    },
};
use pintle_registry::{RequestContext, Strategy};
use std::collections::HashSet;

/// The two directions, with the field name of the peers of each.
const DIRECTIONS: [(&str, &str); 2] = [("ingress", "from"), ("egress", "to")];

pub(super) struct NetworkPolicyStrategy;

impl Strategy for NetworkPolicyStrategy {
    fn set_defaults(&self, object: &mut Value) {
        for (direction, _) in DIRECTIONS {
            for rule in object.items_at_mut(&format!("spec.{direction}")) {
                for port in rule.items_at_mut("ports") {
                    port.set_default("protocol", "TCP");
                }
            }
        }
        if object.items_at("spec.policyTypes").is_empty() {
            let has_egress = !object.items_at("spec.egress").is_empty();
            let types = if has_egress { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) };
            object.set("spec.policyTypes", types);
        }
    }

    fn prepare_for_create(&self, _context: &RequestContext<'_>, object: &mut Value) {
        object.set_generation(1);
    }

    fn validate(&self, _context: &RequestContext<'_>, object: &Value) -> ErrorList {
        let mut errors = rules::metadata(object, true);
        errors.extend(validate_spec(object, LabelSelectorOptions::default(), &HashSet::new()));
        errors
    }

    fn warnings_on_create(&self, _context: &RequestContext<'_>, object: &Value) -> Vec<String> {
        warnings(object)
    }

    fn prepare_for_update(&self, context: &RequestContext<'_>, object: &mut Value, old: &Value) {
        // An empty list of the body differs from none until it is stored.
        let has_changed =
            context.empty_fields.any_left_within("spec", object) || rules::differs(object, old, "spec");
        rules::count_generation_if(object, old, has_changed);
    }

    fn validate_update(&self, _context: &RequestContext<'_>, object: &Value, old: &Value) -> ErrorList {
        // Ratcheting: values that older servers accepted are kept.
        let strict = LabelSelectorOptions::default();
        let old_selector = rules::value_at(old, "spec.podSelector");
        let is_lax = !validate_label_selector(old_selector, strict, &FieldPath::default()).is_empty();
        let options = LabelSelectorOptions { allow_invalid_label_value: is_lax, ..strict };
        let old_cidrs: HashSet<&str> = blocks(old)
            .into_iter()
            .flat_map(|(_, block)| {
                field_checks::texts(block.items_at("except")).chain([block.str_at("cidr")])
            })
            .collect();
        let mut errors = rules::metadata_update(object, old);
        errors.extend(validate_spec(object, options, &old_cidrs));
        errors
    }

    fn warnings_on_update(&self, _context: &RequestContext<'_>, object: &Value, _old: &Value) -> Vec<String> {
        warnings(object)
    }
}

/// All address blocks of a policy, with their paths.
fn blocks(policy: &Value) -> Vec<(FieldPath, &Value)> {
    let mut blocks = Vec::new();
    for (direction, peers) in DIRECTIONS {
        let path = FieldPath::new("spec").child(direction);
        for (index, rule) in policy.items_at(&format!("spec.{direction}")).iter().enumerate() {
            for (peer_index, peer) in rule.items_at(peers).iter().enumerate() {
                if let Some(block) = peer.at("ipBlock") {
                    let path = path.index(index).child(peers).index(peer_index).child("ipBlock");
                    blocks.push((path, block));
                }
            }
        }
    }
    blocks
}

fn warnings(policy: &Value) -> Vec<String> {
    let mut warnings = Vec::new();
    for (path, block) in blocks(policy) {
        warnings.extend(warnings_for_cidr(&path.child("cidr"), block.str_at("cidr")));
        for (index, except) in field_checks::texts(block.items_at("except")).enumerate() {
            warnings.extend(warnings_for_cidr(&path.child("except").index(index), except));
        }
    }
    warnings
}

fn validate_spec(policy: &Value, options: LabelSelectorOptions, old_cidrs: &HashSet<&str>) -> ErrorList {
    let spec = FieldPath::new("spec");
    let pods = rules::value_at(policy, "spec.podSelector");
    let mut errors = validate_label_selector(pods, options, &spec.child("podSelector"));
    for (direction, peers) in DIRECTIONS {
        for (index, rule) in policy.items_at(&format!("spec.{direction}")).iter().enumerate() {
            let path = spec.child(direction).index(index);
            for (index, port) in rule.items_at("ports").iter().enumerate() {
                errors.extend(validate_port(port, &path.child("ports").index(index)));
            }
            for (index, peer) in rule.items_at(peers).iter().enumerate() {
                errors.extend(validate_peer(peer, options, old_cidrs, &path.child(peers).index(index)));
            }
        }
    }
    let types = policy.items_at("spec.policyTypes");
    let path = spec.child("policyTypes");
    if types.len() > 2 {
        errors.push(FieldError::invalid(&path, types.to_vec(), "may not specify more than two policyTypes"));
        return errors;
    }
    for (index, policy_type) in field_checks::texts(types).enumerate() {
        errors.extend(field_checks::supported(policy_type, &["Ingress", "Egress"], &path.index(index)));
    }
    errors
}

fn validate_port(port: &Value, path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    if let Some(protocol) = port.at("protocol").and_then(Value::as_str) {
        let protocols = ["TCP", "UDP", "SCTP"];
        errors.extend(field_checks::supported(protocol, &protocols, &path.child("protocol")));
    }
    let (port_path, end_path) = (path.child("port"), path.child("endPort"));
    let end = port.i64_at("endPort");
    let numbers = |number: i64, path: &FieldPath| {
        let messages = is_valid_port_num(number).into_iter();
        messages.map(|message| FieldError::invalid(path, number, message)).collect::<ErrorList>()
    };
    match (port.at("port"), end) {
        (None, None) => {}
        (None, Some(end)) => {
            let detail = "may not be specified when `port` is not specified";
            errors.push(FieldError::invalid(&end_path, end, detail));
        }
        (Some(Value::String(name)), end) => {
            if let Some(end) = end {
                let detail = "may not be specified when `port` is non-numeric";
                errors.push(FieldError::invalid(&end_path, end, detail));
            }
            errors.extend(field_checks::invalid_each(&port_path, name, is_valid_port_name(name)));
        }
        (Some(number), end) => {
            let number = number.as_i64().unwrap_or_default();
            errors.extend(numbers(number, &port_path));
            if let Some(end) = end {
                if end < number {
                    let detail = "must be greater than or equal to `port`";
                    errors.push(FieldError::invalid(&end_path, number, detail));
                }
                errors.extend(numbers(end, &end_path));
            }
        }
    }
    errors
}

fn validate_peer(
    peer: &Value,
    options: LabelSelectorOptions,
    old_cidrs: &HashSet<&str>,
    path: &FieldPath,
) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut peers = 0;
    for selector in ["podSelector", "namespaceSelector"] {
        if let Some(value) = peer.at(selector) {
            peers += 1;
            errors.extend(validate_label_selector(value, options, &path.child(selector)));
        }
    }
    let block = peer.at("ipBlock");
    if let Some(block) = block {
        peers += 1;
        errors.extend(validate_block(block, old_cidrs, &path.child("ipBlock")));
    }
    if peers == 0 {
        errors.push(FieldError::required(path, "must specify a peer"));
    } else if peers > 1 && block.is_some() {
        errors.push(FieldError::forbidden(path, "may not specify both ipBlock and another peer"));
    }
    errors
}

fn validate_block(block: &Value, old_cidrs: &HashSet<&str>, path: &FieldPath) -> ErrorList {
    let (cidr, cidr_path) = (block.str_at("cidr"), path.child("cidr"));
    if cidr.is_empty() {
        return vec![FieldError::required(&cidr_path, "")];
    }
    let mut errors = field_checks::legacy_cidr(&cidr_path, cidr, old_cidrs);
    let Some(whole) = Cidr::parse_sloppy(cidr) else { return errors };
    for (index, except) in field_checks::texts(block.items_at("except")).enumerate() {
        let path = path.child("except").index(index);
        errors.extend(field_checks::legacy_cidr(&path, except, old_cidrs));
        let Some(part) = Cidr::parse_sloppy(except) else { continue };
        if !whole.contains(part.network()) || whole.prefix_length >= part.prefix_length {
            errors.push(FieldError::invalid(&path, except, "must be a strict subset of `cidr`"));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_completed() {
        let check = |spec: Value, expected: Value| {
            let mut policy = json!({"spec": spec});
            NetworkPolicyStrategy.set_defaults(&mut policy);
            assert_eq!(policy["spec"], expected);
        };
        check(json!({}), json!({"policyTypes": ["Ingress"]}));
        check(
            json!({"egress": [{"ports": [{"port": 53}]}]}),
            json!({
                "policyTypes": ["Ingress", "Egress"], "egress": [{"ports": [{"port": 53, "protocol": "TCP"}]}]
            }),
        );
    }

    #[test]
    fn policies_are_checked() {
        let check = |rule: Value, expected: &[&str]| {
            let policy = json!({"spec": {"ingress": [rule], "policyTypes": ["Ingress"]}});
            let errors = validate_spec(&policy, LabelSelectorOptions::default(), &HashSet::new());
            assert_eq!(errors.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
        };
        check(json!({"from": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}}]}), &[]);
        check(
            json!({"from": [
                {}, {"podSelector": {}, "ipBlock": {"cidr": "10.0.0.0/8", "except": ["11.0.0.0/16"]}}
            ]}),
            &[
                "spec.ingress[0].from[0]: Required value: must specify a peer",
                r#"spec.ingress[0].from[1].ipBlock.except[0]: Invalid value: "11.0.0.0/16": must be a strict subset of `cidr`"#,
                "spec.ingress[0].from[1]: Forbidden: may not specify both ipBlock and another peer",
            ],
        );
        check(
            json!({"ports": [
                {"port": 80, "endPort": 79}, {"endPort": 1}, {"port": "web", "endPort": 1}, {"protocol": "X"}
            ]}),
            &[
                "spec.ingress[0].ports[0].endPort: Invalid value: 80: must be greater than or equal to `port`",
                "spec.ingress[0].ports[1].endPort: Invalid value: 1: may not be specified when `port` is not specified",
                "spec.ingress[0].ports[2].endPort: Invalid value: 1: may not be specified when `port` is non-numeric",
                r#"spec.ingress[0].ports[3].protocol: Unsupported value: "X": supported values: "TCP", "UDP", "SCTP""#,
            ],
        );
    }
}
