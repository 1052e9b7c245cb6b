//! Validates the bindings of mutating admission policies.

use crate::{
    admissionregistration::policy_validation::{PolicyClass, validate_common_binding_spec},
    rules,
};
use pintle_machinery::{ErrorList, FieldPath, Value, ValueExt};

/// Validates a new binding.
pub(super) fn validate(binding: &Value) -> ErrorList {
    let mut errors = rules::accessor_metadata(binding, false);
    let spec = binding.at("spec").unwrap_or(&Value::Null);
    errors.extend(validate_common_binding_spec(spec, PolicyClass::Mutating, &FieldPath::new("spec")));
    errors
}

/// Validates an update of a binding.
pub(super) fn validate_update(binding: &Value, _old: &Value) -> ErrorList {
    validate(binding)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    #[test]
    fn bindings_name_a_policy_and_requests_with_an_object() {
        let check = |spec: Value, expected: &[&str]| {
            let binding = json!({"metadata": {"name": "b"}, "spec": spec});
            let found: Vec<String> = validate(&binding).iter().map(ToString::to_string).collect();
            assert_eq!(found, expected, "{spec}");
        };
        check(json!({"policyName": "p"}), &[]);
        check(json!({}), &["spec.policyName: Required value"]);
        let resources = |operation: &str| {
            json!({"policyName": "p", "matchResources": {
                "matchPolicy": "Exact", "namespaceSelector": {}, "objectSelector": {}, "resourceRules": [{
                    "operations": [operation], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"],
                }],
            }})
        };
        check(resources("CONNECT"), &[]);
        check(
            resources("DELETE"),
            &[
                "spec.matchResources.resourceRules.operations: Unsupported value: \"DELETE\": supported values: \"*\", \
             \"CONNECT\", \"CREATE\", \"UPDATE\"",
            ],
        );
    }
}
