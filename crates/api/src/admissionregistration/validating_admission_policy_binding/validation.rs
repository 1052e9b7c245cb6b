//! Validates the bindings of validating admission policies.

use crate::{
    admissionregistration::policy_validation::{PolicyClass, validate_common_binding_spec},
    field_checks::texts,
    rules,
};
use pintle_machinery::{ErrorList, FieldError, FieldPath, Value, ValueExt, error_list::is_enough};
use std::collections::HashSet;

const ACTIONS: [&str; 3] = ["Audit", "Deny", "Warn"];

/// Validates a new binding.
pub(super) fn validate(binding: &Value) -> ErrorList {
    let mut errors = rules::accessor_metadata(binding, false);
    let spec = binding.at("spec").unwrap_or(&Value::Null);
    let path = FieldPath::new("spec");
    errors.extend(validate_common_binding_spec(spec, PolicyClass::Validating, &path));
    let actions = spec.items_at("validationActions");
    errors.extend(validate_actions(actions, &path.child("validationActions")));
    errors
}

/// Validates an update of a binding.
pub(super) fn validate_update(binding: &Value, _old: &Value) -> ErrorList {
    validate(binding)
}

fn validate_actions(actions: &[Value], path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut seen = HashSet::new();
    for (index, action) in texts(actions).enumerate() {
        if is_enough(&errors) {
            return errors;
        }
        let path = path.index(index);
        if !ACTIONS.contains(&action) {
            errors.push(FieldError::not_supported(&path, action, &ACTIONS));
        }
        if !seen.insert(action) {
            errors.push(FieldError::duplicate(&path, action).of_named_type());
        }
    }
    if seen.contains("Deny") && seen.contains("Warn") {
        let detail = "must not contain both Deny and Warn (repeating the same validation failure information in the API \
                      response and headers serves no purpose)";
        errors.push(FieldError::invalid(path, actions, detail));
    }
    if seen.is_empty() {
        errors.push(FieldError::required(path, "at least one validation action is required"));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    fn check(spec: Value, expected: &[&str]) {
        let binding = json!({"metadata": {"name": "b"}, "spec": spec});
        let found: Vec<String> = validate(&binding).iter().map(ToString::to_string).collect();
        assert_eq!(found, expected, "{spec}");
    }

    #[test]
    fn bindings_name_a_policy_and_actions() {
        check(json!({"policyName": "p", "validationActions": ["Warn", "Audit"]}), &[]);
        check(
            json!({}),
            &[
                "spec.policyName: Required value",
                "spec.validationActions: Required value: at least one validation action is required",
            ],
        );
        check(
            json!({"policyName": "P", "validationActions": ["Deny", "Deny", "Warn", "Log"]}),
            &[
                "spec.policyName: Invalid value: \"P\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric \
                 characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used \
                 for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
                "spec.validationActions[1]: Duplicate value: \"Deny\"",
                "spec.validationActions[3]: Unsupported value: \"Log\": supported values: \"Audit\", \"Deny\", \"Warn\"",
                "spec.validationActions: Invalid value: [\"Deny\",\"Deny\",\"Warn\",\"Log\"]: must not contain both Deny and Warn \
                 (repeating the same validation failure information in the API response and headers serves no purpose)",
            ],
        );
    }

    #[test]
    fn parameters_are_named_or_selected() {
        let with = |reference: Value, expected: &[&str]| {
            check(json!({"policyName": "p", "validationActions": ["Deny"], "paramRef": reference}), expected);
        };
        with(json!({"name": "a", "parameterNotFoundAction": "Allow"}), &[]);
        with(json!({"selector": {}, "parameterNotFoundAction": "Deny"}), &[]);
        with(
            json!({"name": "a/b", "selector": {}}),
            &[
                "spec.paramRef.name: Invalid value: \"a/b\": may not contain '/'",
                "spec.paramRef.name: Forbidden: name and selector are mutually exclusive",
                "spec.paramRef.selector: Forbidden: name and selector are mutually exclusive",
                "spec.paramRef.parameterNotFoundAction: Required value",
            ],
        );
        with(
            json!({"parameterNotFoundAction": "Log"}),
            &[
                "spec.paramRef: Required value: one of name or selector must be specified",
                "spec.paramRef.parameterNotFoundAction: Unsupported value: \"Log\": supported values: \"Deny\", \"Allow\"",
            ],
        );
    }
}
