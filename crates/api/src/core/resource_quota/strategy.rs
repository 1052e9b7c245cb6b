//! The strategy of resource quotas.

use crate::core::pod_spec::resources::{validate_quantity, validate_resource_name};
use crate::{field_checks, resource_list, rules};
use pintle_machinery::{ErrorList, FieldError, FieldPath, Value, ValueExt, error_list::LargeErrors, json};
use pintle_registry::{RequestContext, Strategy};
use std::collections::{BTreeSet, HashMap};

const STANDARD_RESOURCES: [&str; 19] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.storage",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "persistentvolumeclaims",
    "configmaps",
    "services.nodeports",
    "services.loadbalancers",
];
/// The compute resources of pods, which the scopes about pods support besides `pods`.
const COMPUTE_RESOURCES: [&str; 6] =
    ["cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"];
/// Scopes for which a selector supports only the operator `Exists`.
const PLAIN_SCOPES: [&str; 5] =
    ["BestEffort", "NotBestEffort", "Terminating", "NotTerminating", "CrossNamespacePodAffinity"];
const PRIORITY_CLASS: &str = "PriorityClass";
const VOLUME_ATTRIBUTES_CLASS: &str = "VolumeAttributesClass";
const CONFLICTING: [[&str; 2]; 2] = [["BestEffort", "NotBestEffort"], ["Terminating", "NotTerminating"]];

pub(super) struct ResourceQuotaStrategy;

impl Strategy for ResourceQuotaStrategy {
    fn reset_fields(&self) -> &'static [&'static str] {
        &["status"]
    }

    fn set_defaults(&self, object: &mut Value) {
        resource_list::round_up_at(object, &["spec.hard", "status.hard", "status.used"]);
    }

    fn prepare_for_create(&self, _context: &RequestContext<'_>, object: &mut Value) {
        object.set("status", json!({}));
    }

    fn validate(&self, _context: &RequestContext<'_>, object: &Value) -> ErrorList {
        let mut errors = rules::metadata(object, true);
        errors.extend(validate_spec(object));
        errors
    }

    fn warnings_on_create(&self, _context: &RequestContext<'_>, object: &Value) -> Vec<String> {
        warnings(object)
    }

    fn prepare_for_update(&self, _context: &RequestContext<'_>, object: &mut Value, old: &Value) {
        rules::keep(object, old, "status");
    }

    fn validate_update(&self, _context: &RequestContext<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = rules::metadata_update(object, old);
        errors.extend(validate_spec(object));
        let scopes = |object: &Value| -> BTreeSet<String> {
            field_checks::texts(object.items_at("spec.scopes")).map(str::to_owned).collect()
        };
        if scopes(object) != scopes(old) {
            let scopes = rules::value_at(object, "spec.scopes").clone();
            errors.push(FieldError::invalid(&FieldPath::new("spec.scopes"), scopes, "field is immutable"));
        }
        errors
    }

    fn returns_deleted_object(&self) -> bool {
        true
    }
}

/// The strategy of the `status` subresource.
pub(super) struct StatusStrategy;

impl Strategy for StatusStrategy {
    fn reset_fields(&self) -> &'static [&'static str] {
        &["spec"]
    }

    fn set_defaults(&self, object: &mut Value) {
        ResourceQuotaStrategy.set_defaults(object);
    }

    fn prepare_for_update(&self, _context: &RequestContext<'_>, object: &mut Value, old: &Value) {
        rules::keep(object, old, "spec");
    }

    fn validate_update(&self, _context: &RequestContext<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = rules::metadata_update(object, old);
        errors.extend(validate_amounts(object, "status.hard"));
        errors.extend(validate_amounts(object, "status.used"));
        errors
    }
}

fn validate_spec(object: &Value) -> ErrorList {
    let mut errors = validate_amounts(object, "spec.hard");
    errors.extend(validate_scopes(object));
    errors.extend(validate_scope_selector(object));
    errors
}

fn validate_amounts(object: &Value, list: &str) -> ErrorList {
    let path = FieldPath::new(list);
    let mut errors = ErrorList::new();
    for (name, value) in object.map_at(list) {
        let path = path.key(name);
        errors.extend(validate_resource_name(name, &path));
        if !name.contains('/') && !is_standard(name) {
            let detail = "must be a standard resource for quota";
            errors.push(FieldError::invalid(&path, name.as_str(), detail).of_named_type());
        }
        errors.extend(validate_quantity(name, value, &path));
    }
    errors
}

fn is_standard(name: &str) -> bool {
    STANDARD_RESOURCES.contains(&name)
        || resource_list::is_huge_page(name)
        || name.strip_prefix("requests.").is_some_and(resource_list::is_huge_page)
}

fn is_scope(scope: &str) -> bool {
    PLAIN_SCOPES.contains(&scope) || [PRIORITY_CLASS, VOLUME_ATTRIBUTES_CLASS].contains(&scope)
}

/// Whether a scope supports a resource. True for an unknown scope, which is rejected separately.
fn fits(scope: &str, resource: &str) -> bool {
    match scope {
        "BestEffort" => resource == "pods",
        VOLUME_ATTRIBUTES_CLASS => ["persistentvolumeclaims", "requests.storage"].contains(&resource),
        scope if is_scope(scope) => resource == "pods" || COMPUTE_RESOURCES.contains(&resource),
        _ => true,
    }
}

/// The numbers of standard resources in a quota that scopes do not support.
struct Misfits<'a> {
    quota: &'a Value,
    of_scopes: HashMap<&'a str, usize>,
}

impl<'a> Misfits<'a> {
    fn new(quota: &'a Value) -> Misfits<'a> {
        Misfits { quota, of_scopes: HashMap::new() }
    }

    /// The number for a scope. The resources are gone through once for each scope that there is.
    fn count(&mut self, scope: &'a str) -> usize {
        if !is_scope(scope) {
            return 0;
        }
        *self.of_scopes.entry(scope).or_insert_with(|| {
            let resources = self.quota.map_at("spec.hard").keys();
            resources.filter(|resource| is_standard(resource) && !fits(scope, resource)).count()
        })
    }
}

fn validate_scopes(object: &Value) -> ErrorList {
    let path = FieldPath::new("spec.scopes");
    let all = object.items_at(path.as_str());
    let invalid = |detail: &str| FieldError::invalid(&path, all.to_vec(), detail);
    let (mut errors, mut misfits) = (LargeErrors::default(), Misfits::new(object));
    let scopes: Vec<&str> = field_checks::texts(all).collect();
    for &scope in &scopes {
        if !is_scope(scope) {
            errors.push(|| invalid("unsupported scope"));
        }
        errors.repeat(misfits.count(scope), || invalid("unsupported scope applied to resource"));
    }
    for _ in conflicts(&scopes) {
        errors.push(|| invalid("conflicting scopes"));
    }
    errors.into_list()
}

fn conflicts<'a>(scopes: &'a [&str]) -> impl Iterator<Item = [&'static str; 2]> + 'a {
    CONFLICTING.into_iter().filter(|pair| pair.iter().all(|scope| scopes.contains(scope)))
}

fn validate_scope_selector(object: &Value) -> ErrorList {
    let path = FieldPath::new("spec.scopeSelector.matchExpressions");
    let requirements = object.items_at(path.as_str());
    let (mut errors, mut misfits) = (LargeErrors::default(), Misfits::new(object));
    for requirement in requirements {
        let (scope, operator) = (requirement.str_at("scopeName"), requirement.str_at("operator"));
        if !is_scope(scope) {
            errors.push(|| {
                FieldError::invalid(&path.child("scopeName"), scope, "unsupported scope").of_named_type()
            });
        }
        errors.repeat(misfits.count(scope), || {
            let selector = rules::value_at(object, "spec.scopeSelector").clone();
            let error = FieldError::invalid(&path, selector, "unsupported scope applied to resource");
            pintle_internal_form::show(error, "core.ScopeSelector")
        });
        if PLAIN_SCOPES.contains(&scope) && operator != "Exists" {
            let detail = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, \
                          ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, \
                          ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity";
            errors.push(|| FieldError::invalid(&path.child("operator"), operator, detail).of_named_type());
        }
        if let Some(error) = validate_operator(requirement, &path) {
            errors.push(|| error);
        }
    }
    let scopes: Vec<&str> = requirements.iter().map(|requirement| requirement.str_at("scopeName")).collect();
    for _ in conflicts(&scopes) {
        errors.push(|| {
            let scopes = rules::value_at(object, "spec.scopes").clone();
            FieldError::invalid(&path, scopes, "conflicting scopes")
        });
    }
    errors.into_list()
}

fn validate_operator(requirement: &Value, path: &FieldPath) -> Option<FieldError> {
    let values = requirement.items_at("values");
    let values_path = path.child("values");
    match requirement.str_at("operator") {
        "In" | "NotIn" if values.is_empty() => Some(FieldError::required(
            &values_path,
            "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector",
        )),
        "Exists" | "DoesNotExist" if !values.is_empty() => Some(FieldError::invalid(
            &values_path,
            values.to_vec(),
            "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector",
        )),
        "In" | "NotIn" | "Exists" | "DoesNotExist" => None,
        operator => {
            let detail = "not a valid selector operator";
            Some(FieldError::invalid(&path.child("operator"), operator, detail).of_named_type())
        }
    }
}

/// Warns about quotas with higher requests than limits.
fn warnings(object: &Value) -> Vec<String> {
    let hard = object.map_at("spec.hard");
    let amount = |name: &str| hard.get(name).map(resource_list::quantity);
    let mut warnings = Vec::new();
    for resource in ["cpu", "memory", "storage", "ephemeral-storage"] {
        let mut request_name = format!("requests.{resource}");
        if amount(&request_name).is_none() && matches!(resource, "cpu" | "memory") {
            resource.clone_into(&mut request_name);
        }
        let limit_name = format!("limits.{resource}");
        if let (Some(request), Some(limit)) = (amount(&request_name), amount(&limit_name))
            && request > limit
        {
            warnings.push(format!(
                "ResourceQuota {request_name} ({request}) should be less than {limit_name} ({limit})"
            ));
        }
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::Map;
    use std::time::{Duration, Instant};

    fn check(spec: Value, messages: &[&str]) {
        let errors: Vec<String> =
            validate_spec(&json!({"spec": spec})).iter().map(ToString::to_string).collect();
        assert_eq!(errors, messages);
    }

    #[test]
    fn resources_are_known_and_amounts_whole() {
        check(json!({"hard": {"pods": "1", "requests.cpu": "500m", "count/deployments.apps": "2"}}), &[]);
        check(
            json!({"hard": {"bananas": "1", "pods": "1500m"}}),
            &[
                "spec.hard[bananas]: Invalid value: \"bananas\": must be a standard resource type or fully qualified",
                "spec.hard[bananas]: Invalid value: \"bananas\": must be a standard resource for quota",
                "spec.hard[pods]: Invalid value: \"1500m\": must be an integer",
            ],
        );
    }

    #[test]
    fn scopes_fit_the_resources_and_each_other() {
        check(
            json!({"hard": {"pods": "1"}, "scopes": ["BestEffort", "NotBestEffort"]}),
            &["spec.scopes: Invalid value: [\"BestEffort\",\"NotBestEffort\"]: conflicting scopes"],
        );
        check(
            json!({"hard": {"requests.cpu": "1"}, "scopes": ["BestEffort"]}),
            &["spec.scopes: Invalid value: [\"BestEffort\"]: unsupported scope applied to resource"],
        );
        check(
            json!({"hard": {"pods": "1"}, "scopeSelector": {"matchExpressions": [
                {"scopeName": "PriorityClass", "operator": "In"},
                {"scopeName": "PriorityClass", "operator": "Near"},
            ]}}),
            &[
                "spec.scopeSelector.matchExpressions.values: Required value: must be at least one value when `operator` is 'In' or 'NotIn' for scope selector",
                "spec.scopeSelector.matchExpressions.operator: Invalid value: \"Near\": not a valid selector operator",
            ],
        );
    }

    #[test]
    fn very_many_scopes_and_resources_are_gone_through_once() {
        let hard: Map = (0..30_000).map(|number| (format!("hugepages-{number}"), json!("1"))).collect();
        let scopes = vec![json!("BestEffort"); 30_000];
        let expressions = vec![json!({"scopeName": "BestEffort", "operator": "Exists"}); 30_000];
        let spec =
            json!({"hard": hard, "scopes": scopes, "scopeSelector": {"matchExpressions": expressions}});
        let start = Instant::now();
        let errors = validate_spec(&json!({"spec": spec}));
        assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
        assert!(errors.len() < 100, "{} errors, each with a list of 30,000 scopes", errors.len());
    }

    #[test]
    fn requests_above_limits_are_warned_of() {
        let quota = json!({"spec": {"hard": {"cpu": "2", "limits.cpu": "1", "requests.memory": "1", "limits.memory": "1"}}});
        assert_eq!(warnings(&quota), ["ResourceQuota cpu (2) should be less than limits.cpu (1)"]);
    }
}
