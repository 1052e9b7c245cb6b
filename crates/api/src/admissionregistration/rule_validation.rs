//! Validates the rules of webhooks and policies.

use crate::field_checks::{supported, texts};
use pintle_machinery::{ErrorList, FieldError, FieldPath, Value, ValueExt, error_list::is_enough};
use std::collections::HashSet;

/// The operations that a webhook or a validating policy can name.
pub(super) const OPERATIONS: &[&str] = &["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];

/// The operations that a mutating policy can name.
pub(super) const MUTATING_OPERATIONS: &[&str] = &["*", "CONNECT", "CREATE", "UPDATE"];

const SCOPES: [&str; 3] = ["*", "Cluster", "Namespaced"];

/// Validates a `RuleWithOperations` whose operations are among `operations`.
pub(super) fn validate_rule_with_operations(
    rule: &Value,
    operations: &[&str],
    path: &FieldPath,
) -> ErrorList {
    let mut errors = ErrorList::new();
    let own = rule.items_at("operations");
    let operations_path = path.child("operations");
    require_some(own, "operations", &operations_path, &mut errors);
    for (index, operation) in texts(own).enumerate() {
        if is_enough(&errors) {
            return errors;
        }
        errors.extend(supported(operation, operations, &operations_path.index(index)));
    }
    errors.extend(validate_rule(rule, path));
    errors
}

fn validate_rule(rule: &Value, path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    // The group may be empty: it is that of the core API.
    require_some(rule.items_at("apiGroups"), "API groups", &path.child("apiGroups"), &mut errors);
    let versions = rule.items_at("apiVersions");
    let versions_path = path.child("apiVersions");
    require_some(versions, "API versions", &versions_path, &mut errors);
    for (index, version) in texts(versions).enumerate() {
        if is_enough(&errors) {
            return errors;
        }
        if version.is_empty() {
            errors.push(FieldError::required(&versions_path.index(index), ""));
        }
    }
    validate_resources(rule.items_at("resources"), &path.child("resources"), &mut errors);
    if let Some(scope) = rule.at("scope").and_then(Value::as_str) {
        errors.extend(supported(scope, &SCOPES, &path.child("scope")));
    }
    errors
}

/// Requires at least one item, and only one if it is the wildcard.
fn require_some(items: &[Value], noun: &str, path: &FieldPath, errors: &mut ErrorList) {
    if items.is_empty() {
        errors.push(FieldError::required(path, ""));
    }
    if items.len() > 1 && texts(items).any(|item| item == "*") {
        let detail = format!("if '*' is present, must not specify other {noun}");
        errors.push(FieldError::invalid(path, items, detail));
    }
}

fn validate_resources(resources: &[Value], path: &FieldPath, errors: &mut ErrorList) {
    if resources.is_empty() {
        errors.push(FieldError::required(path, ""));
    }
    // The `x` of `x/*` and of `*/x`.
    let (mut with_any_subresource, mut of_any_resource) = (HashSet::new(), HashSet::new());
    // Only the last resource without a subresource counts: the reference accepts `a, *` and refuses `*, a`.
    let mut last_is_named = false;
    for (index, resource) in texts(resources).enumerate() {
        if is_enough(errors) {
            return;
        }
        let path = path.index(index);
        if resource.is_empty() {
            errors.push(FieldError::required(&path, ""));
            continue;
        }
        let Some((name, subresource)) = resource.split_once('/') else {
            last_is_named = resource != "*";
            continue;
        };
        for (wildcard, is_present) in [
            (format!("{name}/*"), with_any_subresource.contains(name)),
            (format!("*/{subresource}"), of_any_resource.contains(subresource)),
        ] {
            if is_present {
                let detail = format!("if '{wildcard}' is present, must not specify {resource}");
                errors.push(FieldError::invalid(&path, resource, detail));
            }
        }
        if subresource == "*" {
            with_any_subresource.insert(name);
        }
        if name == "*" {
            of_any_resource.insert(subresource);
        }
    }
    let has = |wildcard: &str| texts(resources).any(|resource| resource == wildcard);
    if resources.len() > 1 && has("*/*") {
        let detail = "if '*/*' is present, must not specify other resources";
        errors.push(FieldError::invalid(path, resources, detail));
    }
    if last_is_named && has("*") {
        let detail = "if '*' is present, must not specify other resources without subresources";
        errors.push(FieldError::invalid(path, resources, detail));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    fn check(changes: Value, expected: &[&str]) {
        let mut rule = json!({"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"],
            "resources": ["pods"], "scope": "*"});
        for (key, value) in changes.as_object().unwrap() {
            rule.set(key, value.clone());
        }
        let errors = validate_rule_with_operations(&rule, OPERATIONS, &FieldPath::new("r"));
        let found: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(found, expected, "{changes}");
    }

    #[test]
    fn rules_name_operations_groups_versions_and_resources() {
        check(json!({}), &[]);
        check(
            json!({"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}),
            &[],
        );
        check(
            json!({"operations": [], "apiGroups": [], "apiVersions": [], "resources": []}),
            &[
                "r.operations: Required value",
                "r.apiGroups: Required value",
                "r.apiVersions: Required value",
                "r.resources: Required value",
            ],
        );
        check(
            json!({"operations": ["*", "CREATE"]}),
            &[
                "r.operations: Invalid value: [\"*\",\"CREATE\"]: if '*' is present, must not specify other operations",
            ],
        );
        check(
            json!({"operations": ["create"], "scope": ""}),
            &[
                "r.operations[0]: Unsupported value: \"create\": supported values: \"*\", \"CONNECT\", \"CREATE\", \
                 \"DELETE\", \"UPDATE\"",
                "r.scope: Unsupported value: \"\": supported values: \"*\", \"Cluster\", \"Namespaced\"",
            ],
        );
        check(json!({"apiVersions": ["v1", ""]}), &["r.apiVersions[1]: Required value"]);
    }

    #[test]
    fn resources_are_not_named_beside_their_wildcard() {
        let resources =
            |resources: &[&str], expected: &[&str]| check(json!({"resources": resources}), expected);
        resources(&["a", "a/status", "*/scale"], &[]);
        resources(&["a", "*"], &[]);
        resources(
            &["*", "a"],
            &[
                "r.resources: Invalid value: [\"*\",\"a\"]: if '*' is present, must not specify other resources without \
               subresources",
            ],
        );
        resources(
            &["*/*", "a"],
            &[
                "r.resources: Invalid value: [\"*/*\",\"a\"]: if '*/*' is present, must not specify other resources",
            ],
        );
        resources(
            &["*/scale", "a/scale"],
            &[
                "r.resources[1]: Invalid value: \"a/scale\": if '*/scale' is present, must not specify a/scale",
            ],
        );
        resources(
            &["a/*", "a/b"],
            &["r.resources[1]: Invalid value: \"a/b\": if 'a/*' is present, must not specify a/b"],
        );
        resources(&["a", ""], &["r.resources[1]: Required value"]);
    }
}
