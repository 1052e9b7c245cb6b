//! Validates the affinity of pods to nodes and to other pods
//! (<https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/#affinity-and-anti-affinity>).

use super::PodValidationOptions;
use super::topology_spread::validate_label_keys;
use crate::field_checks::{invalid_each, texts};
use pintle_machinery::error_list::is_enough;
use pintle_machinery::validation::{
    LabelSelectorOptions, is_dns1123_label, is_dns1123_subdomain, is_valid_label_value, validate_label_name,
    validate_label_selector,
};
use pintle_machinery::{ErrorList, FieldError, FieldPath, Value, ValueExt};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// Validates `affinity`.
pub(super) fn validate(spec: &Value, options: &PodValidationOptions, path: &FieldPath) -> ErrorList {
    let Some(affinity) = spec.at("affinity") else { return ErrorList::new() };
    let path = path.child("affinity");
    let mut errors = ErrorList::new();
    if let Some(nodes) = affinity.at("nodeAffinity") {
        let path = path.child("nodeAffinity");
        if let Some(selector) = nodes.at(REQUIRED) {
            let lenient = options.allow_invalid_label_value_in_required_node_affinity;
            errors.extend(validate_node_selector(selector, lenient, &path.child(REQUIRED)));
        }
        errors.extend(validate_preferred_nodes(nodes.items_at(PREFERRED), &path.child(PREFERRED)));
    }
    for field in ["podAffinity", "podAntiAffinity"] {
        if let Some(pods) = affinity.at(field) {
            errors.extend(validate_pods(pods, options, &path.child(field)));
        }
    }
    errors
}

/// Validates a node selector; `lenient` accepts values that are not valid for labels.
pub(crate) fn validate_node_selector(selector: &Value, lenient: bool, path: &FieldPath) -> ErrorList {
    let path = path.child("nodeSelectorTerms");
    let terms = selector.items_at("nodeSelectorTerms");
    if terms.is_empty() {
        return vec![FieldError::required(&path, "must have at least one node selector term")];
    }
    let terms = terms.iter().enumerate();
    terms.flat_map(|(index, term)| validate_node_term(term, lenient, &path.index(index))).collect()
}

fn validate_preferred_nodes(terms: &[Value], path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    for (index, term) in terms.iter().enumerate() {
        if is_enough(&errors) {
            break;
        }
        let path = path.index(index);
        errors.extend(validate_weight(term, &path));
        // Values that are not valid for labels are accepted in preferences.
        let preference = term.at("preference").unwrap_or(&Value::Null);
        errors.extend(validate_node_term(preference, true, &path.child("preference")));
    }
    errors
}

fn validate_weight(term: &Value, path: &FieldPath) -> Option<FieldError> {
    let weight = term.i64_at("weight").unwrap_or_default();
    let is_valid = (1..=100).contains(&weight);
    (!is_valid).then(|| FieldError::invalid(&path.child("weight"), weight, "must be in the range 1-100"))
}

fn validate_node_term(term: &Value, lenient: bool, path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    for (index, requirement) in term.items_at("matchExpressions").iter().enumerate() {
        if is_enough(&errors) {
            break;
        }
        let path = path.child("matchExpressions").index(index);
        errors.extend(validate_node_requirement(requirement, lenient, &path));
    }
    for (index, requirement) in term.items_at("matchFields").iter().enumerate() {
        if is_enough(&errors) {
            break;
        }
        errors.extend(validate_node_field(requirement, &path.child("matchFields").index(index)));
    }
    errors
}

fn validate_node_requirement(requirement: &Value, lenient: bool, path: &FieldPath) -> ErrorList {
    let values = requirement.items_at("values");
    let values_path = path.child("values");
    let operator = requirement.str_at("operator");
    let mut errors = ErrorList::new();
    match (operator, values.len()) {
        ("In" | "NotIn", 0) => {
            let detail = "must be specified when `operator` is 'In' or 'NotIn'";
            errors.push(FieldError::required(&values_path, detail));
        }
        ("Exists" | "DoesNotExist", 1..) => {
            let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            errors.push(FieldError::forbidden(&values_path, detail));
        }
        ("Gt" | "Lt", 0 | 2..) => {
            let detail = "must be specified single value when `operator` is 'Lt' or 'Gt'";
            errors.push(FieldError::required(&values_path, detail));
        }
        ("In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt", _) => {}
        _ => {
            let detail = "not a valid selector operator";
            errors.push(FieldError::invalid(&path.child("operator"), operator, detail).of_named_type());
        }
    }
    errors.extend(validate_label_name(requirement.str_at("key"), &path.child("key")));
    if !lenient {
        for (index, value) in texts(values).enumerate() {
            if is_enough(&errors) {
                break;
            }
            errors.extend(invalid_each(&values_path.index(index), value, is_valid_label_value(value)));
        }
    }
    errors
}

/// Validates a field requirement of a node selector. The only supported field is the node's name.
fn validate_node_field(requirement: &Value, path: &FieldPath) -> ErrorList {
    let values = requirement.items_at("values");
    let operator = requirement.str_at("operator");
    let mut errors = ErrorList::new();
    match operator {
        "In" | "NotIn" if values.len() != 1 => {
            let detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
            errors.push(FieldError::required(&path.child("values"), detail));
        }
        "In" | "NotIn" => {}
        _ => {
            let detail = "not a valid selector operator";
            errors.push(FieldError::invalid(&path.child("operator"), operator, detail).of_named_type());
        }
    }
    match requirement.str_at("key") {
        "metadata.name" => {
            for (index, value) in texts(values).enumerate() {
                let path = path.child("values").index(index);
                errors.extend(invalid_each(&path, value, is_dns1123_subdomain(value)));
            }
        }
        key => {
            let detail = "not a valid field selector key";
            errors.push(FieldError::invalid(&path.child("key"), key, detail));
        }
    }
    errors
}

fn validate_pods(affinity: &Value, options: &PodValidationOptions, path: &FieldPath) -> ErrorList {
    let lenient = options.allow_invalid_label_value_in_selector;
    let mut errors = ErrorList::new();
    for (index, term) in affinity.items_at(REQUIRED).iter().enumerate() {
        if is_enough(&errors) {
            break;
        }
        errors.extend(validate_pod_term(term, lenient, &path.child(REQUIRED).index(index)));
    }
    for (index, weighted) in affinity.items_at(PREFERRED).iter().enumerate() {
        if is_enough(&errors) {
            break;
        }
        let path = path.child(PREFERRED).index(index);
        errors.extend(validate_weight(weighted, &path));
        let term = weighted.at("podAffinityTerm").unwrap_or(&Value::Null);
        errors.extend(validate_pod_term(term, lenient, &path.child("podAffinityTerm")));
    }
    errors
}

fn validate_pod_term(term: &Value, lenient: bool, path: &FieldPath) -> ErrorList {
    let mut errors = validate_selectors(term, lenient, path);
    for name in texts(term.items_at("namespaces")) {
        errors.extend(invalid_each(&path.child("namespace"), name, is_dns1123_label(name)));
    }
    errors.extend(validate_label_keys(term, path));
    let key = term.str_at("topologyKey");
    let path = path.child("topologyKey");
    if key.is_empty() {
        errors.push(FieldError::required(&path, "can not be empty"));
    }
    errors.extend(validate_label_name(key, &path));
    errors
}

fn validate_selectors(term: &Value, lenient: bool, path: &FieldPath) -> ErrorList {
    let options = LabelSelectorOptions { allow_invalid_label_value: lenient, ..Default::default() };
    let mut errors = ErrorList::new();
    for field in ["labelSelector", "namespaceSelector"] {
        let selector = term.at(field).unwrap_or(&Value::Null);
        errors.extend(validate_label_selector(selector, options, &path.child(field)));
    }
    errors
}

/// The required and preferred terms of pod affinity and anti-affinity.
pub(super) fn pod_terms(spec: &Value) -> impl Iterator<Item = &Value> {
    ["podAffinity", "podAntiAffinity"]
        .into_iter()
        .filter_map(|field| spec.at("affinity")?.at(field))
        .flat_map(|affinity| {
            let preferred = affinity.items_at(PREFERRED).iter();
            let preferred = preferred.filter_map(|weighted| weighted.at("podAffinityTerm"));
            affinity.items_at(REQUIRED).iter().chain(preferred)
        })
}

/// Whether the label selectors of a stored spec's pod affinity terms have values that are not valid for labels.
pub(super) fn has_invalid_selector(spec: &Value) -> bool {
    pod_terms(spec).any(|term| !validate_selectors(term, false, &FieldPath::default()).is_empty())
}
