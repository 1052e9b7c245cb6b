//! Validates validating admission policies.

use crate::{
    admissionregistration::{
        expressions::{PreexistingExpressions, validate_expression, validate_variables},
        policy_validation::{PolicyClass, validate_common_spec},
    },
    field_checks::supported,
    rules,
};
use pintle_admission_cel::{Compiler, OptionalVariables, Returns};
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, Value, ValueExt,
    error_list::is_enough,
    jsonpath::JsonPath,
    validation::{is_qualified_name, validate_conditions},
};
use std::collections::HashSet;

const MAX_AUDIT_ANNOTATIONS: usize = 20;
/// In bytes.
const MAX_VALUE_EXPRESSION: usize = 5 * 1024;
const REASONS: [&str; 3] = ["Forbidden", "Invalid", "RequestEntityTooLarge"];

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
    errors.extend(validate_common_spec(policy, old, &preexisting, PolicyClass::Validating, &path));
    let spec = policy.at("spec").unwrap_or(&Value::Null);
    let params = spec.at("paramKind").is_some();
    let optional = OptionalVariables { params, authorizer: true };
    let variables = spec.items_at("variables");
    let mut compiler = match variables.is_empty() {
        true => Compiler::new(),
        false => Compiler::with_variables(),
    };
    let variables_path = path.child("variables");
    errors.extend(validate_variables(&mut compiler, variables, &preexisting, optional, &variables_path));
    let (validations, annotations) = (spec.items_at("validations"), spec.items_at("auditAnnotations"));
    let (validations_path, annotations_path) = (path.child("validations"), path.child("auditAnnotations"));
    if validations.is_empty() && annotations.is_empty() {
        let detail = "validations or auditAnnotations must contain at least one item";
        errors.push(FieldError::required(&validations_path, detail));
        errors.push(FieldError::required(&annotations_path, detail));
        return errors;
    }
    for (index, validation) in validations.iter().enumerate() {
        if is_enough(&errors) {
            return errors;
        }
        let path = validations_path.index(index);
        validate_validation(&compiler, validation, &preexisting, params, &path, &mut errors);
    }
    if annotations.len() > MAX_AUDIT_ANNOTATIONS {
        let detail = format!("must not have more than {MAX_AUDIT_ANNOTATIONS} auditAnnotations");
        let error = FieldError::invalid(&annotations_path, annotations.to_vec(), detail);
        errors.push(pintle_internal_form::show(error, "[]admissionregistration.AuditAnnotation"));
    }
    let name = policy.str_at("metadata.name");
    let mut keys = HashSet::new();
    for (index, annotation) in annotations.iter().enumerate() {
        if is_enough(&errors) {
            return errors;
        }
        let path = annotations_path.index(index);
        validate_annotation(&compiler, name, annotation, &preexisting, optional, &path, &mut errors);
        let key = annotation.str_at("key");
        if !keys.insert(key) {
            errors.push(FieldError::duplicate(&path.child("key"), key));
        }
    }
    errors
}

fn validate_validation(
    compiler: &Compiler,
    validation: &Value,
    preexisting: &PreexistingExpressions<'_>,
    params: bool,
    path: &FieldPath,
    errors: &mut ErrorList,
) {
    const NOT_EMPTY: &str = "must be non-empty if specified";
    let [expression, message_expression, message] =
        ["expression", "messageExpression", "message"].map(|field| validation.str_at(field));
    let expression_path = path.child("expression");
    match expression.trim().is_empty() {
        true => errors.push(FieldError::required(&expression_path, "expression is not specified")),
        false => {
            let optional = OptionalVariables { params, authorizer: true };
            errors.extend(validate_expression(
                compiler,
                expression,
                preexisting.validations.environment_of(expression),
                optional,
                Returns::BOOL,
                &expression_path,
            ));
        }
    }
    let message_expression_path = path.child("messageExpression");
    if !message_expression.trim().is_empty() {
        let optional = OptionalVariables { params, authorizer: false };
        errors.extend(validate_expression(
            compiler,
            message_expression,
            preexisting.messages.environment_of(message_expression),
            optional,
            Returns::STRING,
            &message_expression_path,
        ));
    } else if !message_expression.is_empty() {
        errors.push(FieldError::invalid(&message_expression_path, message_expression, NOT_EMPTY));
    }
    let message_path = path.child("message");
    if !message.is_empty() && message.trim().is_empty() {
        errors.push(FieldError::invalid(&message_path, message, NOT_EMPTY));
    } else if message.trim().contains(['\n', '\r']) {
        errors.push(FieldError::invalid(&message_path, message, "must not contain line breaks"));
    }
    if let Some(reason) = validation.at("reason").and_then(Value::as_str) {
        errors.extend(supported(reason, &REASONS, &path.child("reason")));
    }
}

fn validate_annotation(
    compiler: &Compiler,
    policy: &str,
    annotation: &Value,
    preexisting: &PreexistingExpressions<'_>,
    optional: OptionalVariables,
    path: &FieldPath,
    errors: &mut ErrorList,
) {
    let (key, key_path) = (annotation.str_at("key"), path.child("key"));
    match policy.is_empty() {
        true => errors.push(FieldError::invalid(&key_path, key, "requires metadata.name be non-empty")),
        false => {
            let whole = format!("{policy}/{key}");
            let messages = is_qualified_name(&whole);
            errors.extend(
                messages.into_iter().map(|message| FieldError::invalid(&key_path, whole.as_str(), message)),
            );
        }
    }
    let path = path.child("valueExpression");
    let source = annotation.str_at("valueExpression");
    let expression = source.trim();
    if expression.is_empty() {
        errors.push(FieldError::required(&path, "valueExpression is not specified"));
    } else if expression.len() > MAX_VALUE_EXPRESSION {
        let detail = format!("must not exceed {MAX_VALUE_EXPRESSION} bytes in length");
        errors.push(FieldError::required(&path, detail));
    } else if let Some(mut error) = validate_expression(
        compiler,
        expression,
        preexisting.annotations.environment_of(source),
        optional,
        Returns::STRING_OR_NULL,
        &path,
    ) {
        // The expression is compiled without spaces around it, and shown with them.
        if error.bad_value.is_some() {
            error.bad_value = Some(source.into());
        }
        errors.push(error);
    }
}

/// Validates the status of a policy.
pub(super) fn validate_status(policy: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let status = policy.at("status").unwrap_or(&Value::Null);
    let path = FieldPath::new("status");
    let warnings_path = path.child("typeChecking").child("expressionWarnings");
    for (index, warning) in status.items_at("typeChecking.expressionWarnings").iter().enumerate() {
        if is_enough(&errors) {
            return errors;
        }
        let path = warnings_path.index(index);
        if warning.str_at("warning").is_empty() {
            errors.push(FieldError::required(&path.child("warning"), ""));
        }
        let (field, path) = (warning.str_at("fieldRef").trim(), path.child("fieldRef"));
        if field.is_empty() {
            errors.push(FieldError::required(&path, ""));
        } else if let Err(error) = JsonPath::parse(&format!("{{{field}}}")) {
            errors.push(FieldError::invalid(&path, field, format!("invalid JSONPath: {error}")));
        }
    }
    errors.extend(validate_conditions(status.items_at("conditions"), &path.child("conditions")));
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admissionregistration::defaults::set_policy_defaults;
    use pintle_feature_gates::{EffectiveVersion, FeatureGates, MinorVersion, testing::override_gates};
    use pintle_machinery::json;

    fn policy(changes: Value) -> Value {
        let mut policy = json!({
            "metadata": {"name": "p"},
            "spec": {
                "matchConstraints": {"resourceRules": [{
                    "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"],
                }]},
                "validations": [{"expression": "true"}],
            },
        });
        for (path, value) in changes.as_object().unwrap() {
            policy.set(&format!("spec.{path}"), value.clone());
        }
        set_policy_defaults(&mut policy);
        policy
    }

    fn check(changes: Value, expected: &[&str]) {
        let errors = validate(&policy(changes.clone()));
        let found: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(found, expected, "{changes}");
    }

    #[test]
    fn stored_expressions_keep_functions_that_new_ones_may_not_use() {
        let gates = FeatureGates::new(EffectiveVersion::emulating(MinorVersion::new(1, 33)));
        let _gates = override_gates(&gates);
        let changes = |range: u8| {
            json!({
                "matchConditions": [{"name": "a", "expression": format!("lists.range({range}) != []")}],
                "validations": [{
                    "expression": format!("lists.range({range}) == []"),
                    "messageExpression": format!("string(lists.range({range}) == [])"),
                }],
                "auditAnnotations": [{"key": "a", "valueExpression": format!("string(lists.range({range}) != [])")}],
            })
        };
        let rejected = |errors: ErrorList| {
            errors
                .iter()
                .map(|error| error.to_string().split(':').next().unwrap_or_default().to_owned())
                .collect()
        };
        let fields: Vec<String> = rejected(validate(&policy(changes(1))));
        let all = [
            "spec.matchConditions[0].expression",
            "spec.validations[0].expression",
            "spec.validations[0].messageExpression",
            "spec.auditAnnotations[0].valueExpression",
        ];
        assert_eq!(fields, all);
        let fields: Vec<String> = rejected(validate_update(&policy(changes(1)), &policy(changes(1))));
        assert_eq!(fields, [""; 0]);
        let fields: Vec<String> = rejected(validate_update(&policy(changes(2)), &policy(changes(1))));
        assert_eq!(fields, all);
    }

    #[test]
    fn policies_name_resources_and_rules() {
        check(json!({}), &[]);
        check(
            json!({"failurePolicy": "Never", "matchConstraints": {}, "validations": []}),
            &[
                "spec.failurePolicy: Unsupported value: \"Never\": supported values: \"Fail\", \"Ignore\"",
                "spec.matchConstraints.resourceRules: Required value",
                "spec.validations: Required value: validations or auditAnnotations must contain at least one item",
                "spec.auditAnnotations: Required value: validations or auditAnnotations must contain at least one item",
            ],
        );
    }

    #[test]
    fn validations_have_expressions_messages_and_reasons() {
        check(
            json!({"validations": [
                {"expression": " ", "message": " ", "messageExpression": " "},
                {"expression": "1", "message": "a\nb", "messageExpression": "authorizer == null", "reason": "Other"},
            ]}),
            &[
                "spec.validations[0].expression: Required value: expression is not specified",
                "spec.validations[0].messageExpression: Invalid value: \" \": must be non-empty if specified",
                "spec.validations[0].message: Invalid value: \" \": must be non-empty if specified",
                "spec.validations[1].expression: Invalid value: \"1\": must evaluate to bool but got int",
                "spec.validations[1].messageExpression: Invalid value: \"authorizer == null\": compilation failed: ERROR: \
                 <input>:1:1: undeclared reference to 'authorizer' (in container '')\n | authorizer == null\n | ^",
                "spec.validations[1].message: Invalid value: \"a\\nb\": must not contain line breaks",
                "spec.validations[1].reason: Unsupported value: \"Other\": supported values: \"Forbidden\", \"Invalid\", \
                 \"RequestEntityTooLarge\"",
            ],
        );
    }

    #[test]
    fn parameters_are_declared_by_their_kind() {
        let uses = json!([{"expression": "params.x == 1"}]);
        check(json!({"validations": uses, "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}), &[]);
        let errors = validate(&policy(json!({"validations": uses})));
        assert!(errors[0].detail.contains("undeclared reference to 'params'"), "{errors:?}");
        check(
            json!({"paramKind": {"apiVersion": "a/b/c", "kind": ""}}),
            &[
                "spec.paramKind.apiVersion: Invalid value: \"a/b/c\": unexpected GroupVersion string: a/b/c",
                "spec.paramKind.kind: Required value",
            ],
        );
    }

    #[test]
    fn annotations_are_bounded_and_unique() {
        check(
            json!({"auditAnnotations": [
                {"key": "a", "valueExpression": "1"},
                {"key": "a", "valueExpression": ""},
                {"key": "b c", "valueExpression": format!("'{}'", "x".repeat(MAX_VALUE_EXPRESSION))},
            ]}),
            &[
                "spec.auditAnnotations[0].valueExpression: Invalid value: \"1\": must evaluate to one of [string null_type] \
                 but got int",
                "spec.auditAnnotations[1].valueExpression: Required value: valueExpression is not specified",
                "spec.auditAnnotations[1].key: Duplicate value: \"a\"",
                "spec.auditAnnotations[2].key: Invalid value: \"p/b c\": name part must consist of alphanumeric characters, \
                 '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or \
                 '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
                "spec.auditAnnotations[2].valueExpression: Required value: must not exceed 5120 bytes in length",
            ],
        );
    }

    #[test]
    fn unchanged_match_conditions_are_not_validated_again() {
        let conditions = json!([{"name": "", "expression": "nope"}]);
        let old = policy(json!({"matchConditions": conditions}));
        assert_eq!(validate_update(&old, &old), []);
        let new = policy(json!({
            "matchConditions": conditions, "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        }));
        assert_eq!(validate_update(&new, &old).len(), 2);
    }

    #[test]
    fn warnings_of_a_status_name_their_fields() {
        let warning = |field: &str, text: &str| json!({"fieldRef": field, "warning": text});
        let mut policy = policy(json!({}));
        policy.set(
            "status.typeChecking.expressionWarnings",
            json!([warning("spec.validations[0].expression", "text"), warning(" ", "")]),
        );
        let found: Vec<String> = validate_status(&policy).iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            [
                "status.typeChecking.expressionWarnings[1].warning: Required value",
                "status.typeChecking.expressionWarnings[1].fieldRef: Required value",
            ]
        );
    }
}
