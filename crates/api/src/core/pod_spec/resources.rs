//! Validates the resource requests and limits of containers and pods
//! (<https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/>).

use super::PodValidationOptions;
use crate::field_checks::{invalid_each, invalid_each_of_named_type};
use crate::resource_list::{
    aggregate, huge_page_size, is_huge_page, is_native, is_overcommit_allowed, is_pod_level, quantity,
};
use pintle_machinery::error_list::is_enough;
use pintle_machinery::error_list::join_names;
use pintle_machinery::validation::{IS_NEGATIVE_ERROR, is_dns1123_label, is_qualified_name};
use pintle_machinery::{ErrorList, FieldError, FieldPath, Map, Quantity, Value, ValueExt, json};
use pintle_registry::EmptyFields;
use std::collections::{BTreeSet, HashMap, HashSet};

/// The names of the claims that containers may refer to.
pub(super) type ClaimNames<'a> = BTreeSet<&'a str>;

/// Validates a container's `resources` (or a list of the same form).
pub(super) fn validate_container(
    resources: &Value,
    claim_names: &ClaimNames<'_>,
    options: &PodValidationOptions,
    path: &FieldPath,
) -> ErrorList {
    validate(resources, validate_container_resource_name, claim_names, options, path)
}

/// Validates the overhead of a runtime class, which is a list of limits.
pub(crate) fn validate_overhead(
    overhead: &Value,
    options: &PodValidationOptions,
    path: &FieldPath,
) -> ErrorList {
    let mut resources = Value::Null;
    resources.set("limits", overhead.clone());
    validate_container(&resources, &ClaimNames::new(), options, path)
}

/// Keeps the empty claims that a body gives a pod as a whole: they are refused there, also when there are none.
pub(crate) fn keep_empty_claims(object: &mut Value, spec: &str, empty_fields: &EmptyFields) {
    let resources = format!("{spec}.resources");
    if empty_fields.contains(&format!("{resources}.claims"))
        && let Some(resources) = object.at_mut(&resources)
    {
        resources.set_default("claims", json!([]));
    }
}

/// Validates the resources of a pod as a whole.
pub(super) fn validate_pod(
    spec: &Value,
    claim_names: &ClaimNames<'_>,
    options: &PodValidationOptions,
    path: &FieldPath,
) -> ErrorList {
    let Some(resources) = spec.at("resources") else { return ErrorList::new() };
    let path = path.child("resources");
    if spec.str_at("os.name") == "windows" {
        return vec![FieldError::forbidden(&path, "may not be set for a windows pod")];
    }
    let mut errors = ErrorList::new();
    if resources.at("claims").is_some() {
        let detail = "claims may not be set for Resources at pod-level";
        errors.push(FieldError::forbidden(&path.child("claims"), detail));
    }
    errors.extend(validate(resources, validate_pod_resource_name, claim_names, options, &path));
    errors.extend(validate_consistency(spec, resources, &path));
    errors
}

/// Rejects container resources that exceed the resources of the pod.
fn validate_consistency(spec: &Value, resources: &Value, path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    for (field, counts) in [("requests", (|_| true) as fn(&str) -> bool), ("limits", is_huge_page)] {
        for (name, total) in aggregate(spec, field) {
            let Some(own) = resources.map_at(field).get(&name).filter(|_| counts(&name)) else { continue };
            let own = quantity(own);
            if total > own {
                let detail =
                    format!("must be greater than or equal to aggregate container {field} of {total}");
                let path = path.child(field).key(&name);
                errors.push(FieldError::invalid(&path, own.to_string(), detail));
            }
        }
    }
    let pod_limits = resources.map_at("limits");
    for (index, container) in spec.items_at("containers").iter().enumerate() {
        if is_enough(&errors) {
            break;
        }
        for (name, limit) in container.map_at("resources.limits") {
            let Some(pod_limit) = pod_limits.get(name) else { continue };
            let (limit, pod_limit) = (quantity(limit), quantity(pod_limit));
            if limit > pod_limit {
                let path = path.child("containers").index(index).key(name).child("limits");
                let detail = format!("must be less than or equal to pod limits of {pod_limit}");
                errors.push(FieldError::invalid(&path, limit.to_string(), detail));
            }
        }
    }
    errors
}

fn validate(
    resources: &Value,
    validate_name: fn(&str, &FieldPath) -> ErrorList,
    claim_names: &ClaimNames<'_>,
    options: &PodValidationOptions,
    path: &FieldPath,
) -> ErrorList {
    let (limits, requests) = (resources.map_at("limits"), resources.map_at("requests"));
    let (limits_path, requests_path) = (path.child("limits"), path.child("requests"));
    let mut errors = ErrorList::new();
    for (name, value) in limits {
        let path = limits_path.key(name);
        errors.extend(validate_name(name, &path));
        errors.extend(validate_quantity(name, value, &path));
        errors.extend(validate_huge_pages(name, value, options, &path));
    }
    for (name, value) in requests {
        let path = requests_path.key(name);
        errors.extend(validate_name(name, &path));
        errors.extend(validate_quantity(name, value, &path));
        let request = quantity(value);
        match limits.get(name).map(quantity) {
            Some(limit) if request != limit && !is_overcommit_allowed(name) => {
                let detail = format!("must be equal to {name} limit of {limit}");
                errors.push(FieldError::invalid(&requests_path, request.to_string(), detail));
            }
            Some(limit) if request > limit => {
                let detail = format!("must be less than or equal to {name} limit of {limit}");
                errors.push(FieldError::invalid(&requests_path, request.to_string(), detail));
            }
            None if !is_overcommit_allowed(name) => {
                let detail = "Limit must be set for non overcommitable resources";
                errors.push(FieldError::required(&limits_path, detail));
            }
            _ => {}
        }
        errors.extend(validate_huge_pages(name, value, options, &path));
    }
    let names = || limits.keys().chain(requests.keys());
    if names().any(|name| is_huge_page(name))
        && !names().any(|name| matches!(name.as_str(), "cpu" | "memory"))
    {
        errors.push(FieldError::forbidden(path, "HugePages require cpu or memory"));
    }
    errors.extend(validate_claims(resources.items_at("claims"), claim_names, &path.child("claims")));
    errors
}

/// Resource names without a domain, as used in limit ranges, quotas and nodes.
const STANDARD_RESOURCES: [&str; 20] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "storage",
    "requests.storage",
    "services.nodeports",
    "services.loadbalancers",
];
/// The standard resources with integer quantities.
const INTEGER_RESOURCES: [&str; 9] = [
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];

/// Validates the name of a resource of any kind.
pub(crate) fn validate_resource_name(name: &str, path: &FieldPath) -> ErrorList {
    let errors = invalid_each_of_named_type(path, name, is_qualified_name(name));
    let is_standard = STANDARD_RESOURCES.contains(&name)
        || is_huge_page(name)
        || name.starts_with("requests.hugepages-")
        || name.contains('/');
    if errors.is_empty() && !is_standard {
        return vec![
            FieldError::invalid(path, name, "must be a standard resource type or fully qualified")
                .of_named_type(),
        ];
    }
    errors
}

/// Validates the name of a resource in a container's requests or limits.
pub(crate) fn validate_container_resource_name(name: &str, path: &FieldPath) -> ErrorList {
    let mut errors = validate_resource_name(name, path);
    let is_standard = matches!(name, "cpu" | "memory" | "ephemeral-storage") || is_huge_page(name);
    if name.matches('/').count() == 0 {
        if !is_standard {
            errors.push(
                FieldError::invalid(path, name, "must be a standard resource for containers").of_named_type(),
            );
        }
    } else if !is_native(name) && !is_extended(name) {
        errors.push(
            FieldError::invalid(path, name, "doesn't follow extended resource name standard").of_named_type(),
        );
    }
    errors
}

fn validate_pod_resource_name(name: &str, path: &FieldPath) -> ErrorList {
    let errors = validate_resource_name(name, path);
    if errors.is_empty() && !is_pod_level(name) {
        return vec![FieldError::not_supported(path, name, &["cpu", "hugepages-", "memory"])];
    }
    errors
}

/// Whether the name is that of an extended resource
/// (<https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/#extended-resources>).
pub(crate) fn is_extended(name: &str) -> bool {
    !is_native(name)
        && !name.starts_with("requests.")
        && is_qualified_name(&format!("requests.{name}")).is_empty()
}

/// Validates the quantity of a resource.
pub(crate) fn validate_quantity(name: &str, value: &Value, path: &FieldPath) -> ErrorList {
    let quantity = quantity(value);
    let mut errors = ErrorList::new();
    if quantity.sign() < 0 {
        errors.push(FieldError::invalid(path, quantity.to_string(), IS_NEGATIVE_ERROR));
    }
    if (INTEGER_RESOURCES.contains(&name) || is_extended(name)) && !is_whole(&quantity) {
        errors.push(FieldError::invalid(path, quantity.to_string(), "must be an integer"));
    }
    errors
}

/// Whether a quantity is a whole number, at a precision of thousandths.
pub(super) fn is_whole(quantity: &Quantity) -> bool {
    quantity.milli_value() % 1000 == 0
}

fn validate_huge_pages(
    name: &str,
    value: &Value,
    options: &PodValidationOptions,
    path: &FieldPath,
) -> ErrorList {
    if !is_huge_page(name) || options.allow_indivisible_huge_pages || is_divisible(name, value) {
        return ErrorList::new();
    }
    let quantity = quantity(value).to_string();
    let detail = format!("{quantity} is not positive integer multiple of {name}");
    vec![FieldError::invalid(path, quantity, detail)]
}

/// Whether a quantity of huge pages is a multiple of the page size.
pub(super) fn is_divisible(name: &str, value: &Value) -> bool {
    let Some(size) = huge_page_size(name).and_then(|size| size.as_i64()).filter(|size| *size > 0) else {
        return false;
    };
    quantity(value).value() % size == 0
}

/// Validates a container's references to the pod's claims, or to single requests of a claim.
fn validate_claims(claims: &[Value], claim_names: &ClaimNames<'_>, path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut seen: HashSet<String> = HashSet::new();
    // The number of references to requests of each claim.
    let mut requests: HashMap<&str, usize> = HashMap::new();
    for (index, claim) in claims.iter().enumerate() {
        if is_enough(&errors) {
            break;
        }
        let path = path.index(index);
        let (name, request) = (claim.str_at("name"), claim.str_at("request"));
        if name.is_empty() {
            errors.push(FieldError::required(&path, ""));
            continue;
        }
        if seen.contains(name) {
            errors.push(FieldError::duplicate(&path, name));
        } else {
            let key = if request.is_empty() { name.to_owned() } else { format!("{name}/{request}") };
            if !request.is_empty() {
                errors.extend(invalid_each(&path.child("request"), request, is_dns1123_label(request)));
            }
            if seen.contains(&key) {
                errors.push(FieldError::duplicate(&path, key.as_str()));
            } else if request.is_empty() {
                let count = requests.get(name).copied().unwrap_or_default();
                errors.extend((0..count).map(|_| FieldError::duplicate(&path, name)));
            }
            let is_new = seen.insert(key);
            if is_new && !request.is_empty() {
                *requests.entry(name).or_default() += 1;
            }
        }
        if !claim_names.contains(name) {
            let mut error = FieldError::not_found(&path, name);
            error.detail = "must be one of the names in pod.spec.resourceClaims".to_owned();
            if claim_names.is_empty() {
                error.detail.push_str(" which is empty");
            } else {
                error.detail.push_str(": ");
                error.detail.push_str(&join_names(claim_names.iter().copied()));
            }
            errors.push(error);
        }
    }
    errors
}

/// Whether a resource list lacks a resource of the old list.
pub(crate) fn has_removed(new: &Map, old: &Map) -> bool {
    old.keys().any(|name| !new.contains_key(name))
}
