//! Validation that validating and mutating policies, and their bindings, share.

use super::{
    expressions::{PreexistingExpressions, validate_match_conditions},
    match_resources::validate_match_resources,
    rule_validation::{MUTATING_OPERATIONS, OPERATIONS},
};
use crate::{
    field_checks::{required_supported, supported, texts},
    rules::differs,
};
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, GroupVersion, Value, ValueExt,
    error_list::is_enough,
    validation::{
        LabelSelectorOptions, is_dns1035_label, is_dns1123_subdomain, name_is_dns_subdomain,
        validate_label_selector, validate_path_segment_name,
    },
};

const FAILURE_POLICIES: [&str; 2] = ["Fail", "Ignore"];
const NOT_FOUND_ACTIONS: [&str; 2] = ["Deny", "Allow"];

/// The policies that change objects and those that only judge them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PolicyClass {
    Validating,
    Mutating,
}

/// Validates that rules of a mutating policy or binding name no other operation than those that can change an object.
fn validate_operations(resources: &Value, class: PolicyClass, path: &FieldPath) -> ErrorList {
    let path = path.child("resourceRules").child("operations");
    let rules = match class {
        PolicyClass::Validating => &[],
        PolicyClass::Mutating => resources.items_at("resourceRules"),
    };
    let operations = rules.iter().flat_map(|rule| texts(rule.items_at("operations")));
    let mut errors = ErrorList::new();
    for operation in operations {
        if is_enough(&errors) {
            break;
        }
        errors.extend(supported(operation, MUTATING_OPERATIONS, &path));
    }
    errors
}

/// Validates the failure policy, the kind of parameters, the match constraints and the match conditions of a policy.
/// The match conditions of an update are validated only if they, or the kind of parameters, change.
pub(super) fn validate_common_spec(
    policy: &Value,
    old: Option<&Value>,
    preexisting: &PreexistingExpressions<'_>,
    class: PolicyClass,
    path: &FieldPath,
) -> ErrorList {
    let spec = policy.at("spec").unwrap_or(&Value::Null);
    let mut errors = supported(spec.str_at("failurePolicy"), &FAILURE_POLICIES, &path.child("failurePolicy"));
    let param_kind = spec.at("paramKind");
    if let Some(kind) = param_kind {
        errors.extend(validate_param_kind(kind, &path.child("paramKind")));
    }
    let constraints_path = path.child("matchConstraints");
    match spec.at("matchConstraints") {
        None => errors.push(FieldError::required(&constraints_path, "")),
        Some(constraints) => {
            errors.extend(validate_match_resources(Some(constraints), OPERATIONS, &constraints_path));
            // The rules tell the types of the objects.
            if constraints.items_at("resourceRules").is_empty() {
                errors.push(FieldError::required(&constraints_path.child("resourceRules"), ""));
            }
            errors.extend(validate_operations(constraints, class, &constraints_path));
        }
    }
    let is_changed =
        |old: &Value| differs(policy, old, "spec.paramKind") || differs(policy, old, "spec.matchConditions");
    if old.is_none_or(is_changed) {
        let conditions = spec.items_at("matchConditions");
        let path = path.child("matchConditions");
        let preexisting = &preexisting.match_conditions;
        errors.extend(validate_match_conditions(conditions, preexisting, param_kind.is_some(), &path));
    }
    errors
}

fn validate_param_kind(kind: &Value, path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    let (api_version, kind) = (kind.str_at("apiVersion"), kind.str_at("kind"));
    let version_path = path.child("apiVersion");
    match GroupVersion::parse(api_version) {
        _ if api_version.is_empty() => errors.push(FieldError::required(&version_path, "")),
        None => {
            let detail = format!("unexpected GroupVersion string: {api_version}");
            errors.push(FieldError::invalid(&version_path, api_version, detail));
        }
        Some(parsed) => {
            let (group, version) = match api_version {
                "/" => ("", ""),
                _ => (parsed.group.as_str(), parsed.version.as_str()),
            };
            let messages = is_dns1123_subdomain(group);
            if !group.is_empty() && !messages.is_empty() {
                errors.push(FieldError::invalid(&version_path, group, messages.join(",")));
            }
            let messages = is_dns1035_label(version);
            if version.is_empty() {
                errors.push(FieldError::invalid(&version_path, api_version, "version must be specified"));
            } else if !messages.is_empty() {
                errors.push(FieldError::invalid(&version_path, version, messages.join(",")));
            }
        }
    }
    let kind_path = path.child("kind");
    let messages = is_dns1035_label(&pintle_go_forms::to_lower(kind));
    if kind.is_empty() {
        errors.push(FieldError::required(&kind_path, ""));
    } else if !messages.is_empty() {
        let detail = format!("may have mixed case, but should otherwise match: {}", messages.join(","));
        errors.push(FieldError::invalid(&kind_path, kind, detail));
    }
    errors
}

/// Validates the policy's name, the parameters and the match resources of a binding.
pub(super) fn validate_common_binding_spec(spec: &Value, class: PolicyClass, path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    let (policy, policy_path) = (spec.str_at("policyName"), path.child("policyName"));
    if policy.is_empty() {
        errors.push(FieldError::required(&policy_path, ""));
    } else {
        let messages = name_is_dns_subdomain(policy, false);
        errors.extend(messages.into_iter().map(|message| FieldError::invalid(&policy_path, policy, message)));
    }
    if let Some(reference) = spec.at("paramRef") {
        errors.extend(validate_param_ref(reference, &path.child("paramRef")));
    }
    let resources_path = path.child("matchResources");
    let resources = spec.at("matchResources");
    errors.extend(validate_match_resources(resources, OPERATIONS, &resources_path));
    errors.extend(validate_operations(resources.unwrap_or(&Value::Null), class, &resources_path));
    errors
}

fn validate_param_ref(reference: &Value, path: &FieldPath) -> ErrorList {
    const EXCLUSIVE: &str = "name and selector are mutually exclusive";
    let mut errors = ErrorList::new();
    let name = reference.str_at("name");
    let selector = reference.field("selector").filter(|selector| !selector.is_null());
    if !name.is_empty() {
        let path = path.child("name");
        let messages = validate_path_segment_name(name, false);
        errors.extend(messages.into_iter().map(|message| FieldError::invalid(&path, name, message)));
        if selector.is_some() {
            errors.push(FieldError::forbidden(&path, EXCLUSIVE));
        }
    }
    if let Some(selector) = selector {
        let path = path.child("selector");
        errors.extend(validate_label_selector(selector, LabelSelectorOptions::default(), &path));
        if !name.is_empty() {
            errors.push(FieldError::forbidden(&path, EXCLUSIVE));
        }
    }
    if name.is_empty() && selector.is_none() {
        errors.push(FieldError::required(path, "one of name or selector must be specified"));
    }
    let action_path = path.child("parameterNotFoundAction");
    errors.extend(required_supported(
        reference.str_at("parameterNotFoundAction"),
        &NOT_FOUND_ACTIONS,
        &action_path,
    ));
    errors
}
