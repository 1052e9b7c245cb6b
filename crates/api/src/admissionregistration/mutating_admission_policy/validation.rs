//! Validates mutating admission policies.

use crate::{
    admissionregistration::{
        expressions::{
            Preexisting, PreexistingExpressions, validate_mutation_expression, validate_variables,
        },
        policy_validation::{PolicyClass, validate_common_spec},
    },
    field_checks::required_supported,
    rules,
};
use pintle_admission_cel::{Compiler, OptionalVariables, Returns};
use pintle_machinery::{ErrorList, FieldError, FieldPath, Value, ValueExt, error_list::is_enough};

const REINVOCATION_POLICIES: [&str; 2] = ["IfNeeded", "Never"];
const PATCH_TYPES: [&str; 2] = [APPLY_CONFIGURATION, JSON_PATCH];
const APPLY_CONFIGURATION: &str = "ApplyConfiguration";
const JSON_PATCH: &str = "JSONPatch";

/// Validates a new policy.
pub(super) fn validate(policy: &Value) -> ErrorList {
    validate_policy(policy, None)
}

/// Validates an update of a policy.
pub(super) fn validate_update(policy: &Value, old: &Value) -> ErrorList {
    validate_policy(policy, Some(old))
}

fn validate_policy(policy: &Value, old: Option<&Value>) -> ErrorList {
    let mut errors = rules::accessor_metadata(policy, false);
    let path = FieldPath::new("spec");
    let preexisting = PreexistingExpressions::of_policy(old);
    errors.extend(validate_common_spec(policy, old, &preexisting, PolicyClass::Mutating, &path));
    let spec = policy.at("spec").unwrap_or(&Value::Null);
    let optional = OptionalVariables { params: spec.at("paramKind").is_some(), authorizer: true };
    let mut compiler = Compiler::with_variables();
    let variables = spec.items_at("variables");
    let variables_path = path.child("variables");
    errors.extend(validate_variables(&mut compiler, variables, &preexisting, optional, &variables_path));
    let (mutations, mutations_path) = (spec.items_at("mutations"), path.child("mutations"));
    if mutations.is_empty() {
        errors.push(FieldError::required(&mutations_path, "mutations must contain at least one item"));
    }
    for (index, mutation) in mutations.iter().enumerate() {
        if is_enough(&errors) {
            return errors;
        }
        let path = mutations_path.index(index);
        errors.extend(validate_mutation(&compiler, mutation, &preexisting.mutations, optional, &path));
    }
    errors.extend(required_supported(
        spec.str_at("reinvocationPolicy"),
        &REINVOCATION_POLICIES,
        &path.child("reinvocationPolicy"),
    ));
    errors
}

fn validate_mutation(
    compiler: &Compiler,
    mutation: &Value,
    preexisting: &Preexisting<'_>,
    optional: OptionalVariables,
    path: &FieldPath,
) -> ErrorList {
    let (own, other, returns) = match mutation.str_at("patchType") {
        APPLY_CONFIGURATION => ("applyConfiguration", "jsonPatch", Returns::configuration()),
        JSON_PATCH => ("jsonPatch", "applyConfiguration", Returns::json_patch()),
        patch_type => {
            let errors = required_supported(patch_type, &PATCH_TYPES, &path.child("patchType"));
            return errors.into_iter().collect();
        }
    };
    let patch_type = mutation.str_at("patchType");
    let mut errors = ErrorList::new();
    let own_path = path.child(own);
    match mutation.at(own) {
        None => {
            let detail = format!("must be specified when patchType is {patch_type}");
            errors.push(FieldError::required(&own_path, detail));
        }
        Some(patch) => {
            let (source, path) = (patch.str_at("expression"), own_path.child("expression"));
            let expression = source.trim();
            match expression.is_empty() {
                true => errors.push(FieldError::required(&path, "")),
                false => {
                    errors.extend(validate_mutation_expression(
                        compiler,
                        expression,
                        preexisting.environment_of(source),
                        optional,
                        returns,
                        &path,
                    ));
                }
            }
        }
    }
    if mutation.at(other).is_some() {
        let detail = format!("must not be specified when patchType is {patch_type}");
        errors.push(FieldError::invalid(&path.child(other), format!("{{{other}}}"), detail));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    fn check(changes: &Value, expected: &[&str]) {
        let mut policy = json!({"metadata": {"name": "p"}, "spec": {
            "failurePolicy": "Fail",
            "reinvocationPolicy": "Never",
            "matchConstraints": {
                "matchPolicy": "Exact", "namespaceSelector": {}, "objectSelector": {}, "resourceRules": [{
                    "operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"],
                }],
            },
            "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{}"}}],
        }});
        for (path, value) in changes.as_object().unwrap() {
            policy.set(path, value.clone());
        }
        let found: Vec<String> = validate(&policy).iter().map(ToString::to_string).collect();
        assert_eq!(found, expected, "{changes}");
    }

    #[test]
    fn policies_have_mutations() {
        check(&json!({}), &[]);
        check(
            &json!({"spec.mutations": []}),
            &["spec.mutations: Required value: mutations must contain at least one item"],
        );
        check(
            &json!({"spec.reinvocationPolicy": "Always"}),
            &[
                "spec.reinvocationPolicy: Unsupported value: \"Always\": supported values: \"IfNeeded\", \"Never\"",
            ],
        );
        check(&json!({"spec.reinvocationPolicy": ""}), &["spec.reinvocationPolicy: Required value"]);
    }

    #[test]
    fn mutations_have_one_patch_of_their_type() {
        let check = |mutation: Value, expected: &[&str]| {
            let expected: Vec<String> =
                expected.iter().map(|error| format!("spec.mutations[0].{error}")).collect();
            let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
            check(&json!({"spec.mutations": [mutation]}), &expected);
        };
        check(json!({"applyConfiguration": {"expression": "Object{}"}}), &["patchType: Required value"]);
        check(
            json!({"patchType": "Merge"}),
            &[
                "patchType: Unsupported value: \"Merge\": supported values: \"ApplyConfiguration\", \"JSONPatch\"",
            ],
        );
        check(
            json!({"patchType": "JSONPatch", "applyConfiguration": {"expression": "Object{}"}}),
            &[
                "jsonPatch: Required value: must be specified when patchType is JSONPatch",
                "applyConfiguration: Invalid value: \"{applyConfiguration}\": must not be specified when patchType is \
                 JSONPatch",
            ],
        );
        check(
            json!({"patchType": "JSONPatch", "jsonPatch": {"expression": " "}}),
            &["jsonPatch.expression: Required value"],
        );
        check(
            json!({"patchType": "JSONPatch", "jsonPatch": {"expression": "[]"}}),
            &[
                "jsonPatch.expression: Invalid value: \"[]\": must evaluate to list(JSONPatch) but got list(dyn)",
            ],
        );
        check(
            json!({"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object.spec{}"}}),
            &[
                "applyConfiguration.expression: Invalid value: \"Object.spec{}\": must evaluate to Object but got \
                 Object.spec",
            ],
        );
    }

    #[test]
    fn only_requests_with_an_object_are_mutated() {
        let expected = "spec.matchConstraints.resourceRules.operations: Unsupported value: \"DELETE\": supported values: \
                        \"*\", \"CONNECT\", \"CREATE\", \"UPDATE\"";
        let rules = json!([{
            "operations": ["CREATE", "DELETE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"],
        }]);
        check(&json!({"spec.matchConstraints.resourceRules": rules}), &[expected]);
    }
}
