//! Validates the expressions of policies and webhooks.

use pintle_admission_cel::{CompileError, Compiler, EnvironmentType, Expression, OptionalVariables, Returns};
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, Value, ValueExt, error_list::is_enough, validation::is_qualified_name,
};
use std::collections::HashSet;

/// The maximum number of match conditions.
const MAX_MATCH_CONDITIONS: usize = 64;

/// The expressions that an object had before an update, by their use. Such an expression may use functions that a new
/// one may not.
#[derive(Debug, Default)]
pub(super) struct PreexistingExpressions<'v> {
    pub(super) match_conditions: Preexisting<'v>,
    /// Variables are looked up here, too.
    pub(super) validations: Preexisting<'v>,
    pub(super) messages: Preexisting<'v>,
    pub(super) annotations: Preexisting<'v>,
    /// Those of `applyConfiguration`; the expressions of JSON patches are looked up here, too.
    pub(super) mutations: Preexisting<'v>,
}

impl<'v> PreexistingExpressions<'v> {
    /// Those of a policy; none without a policy.
    pub(super) fn of_policy(old: Option<&'v Value>) -> PreexistingExpressions<'v> {
        let Some(old) = old else { return PreexistingExpressions::default() };
        let of = |list: &str, field: &'static str| Preexisting::of(old.items_at(list), field);
        PreexistingExpressions {
            match_conditions: of("spec.matchConditions", "expression"),
            validations: of("spec.validations", "expression"),
            messages: of("spec.validations", "messageExpression"),
            annotations: of("spec.auditAnnotations", "valueExpression"),
            mutations: of("spec.mutations", "applyConfiguration.expression"),
        }
    }

    /// Those of the webhooks of a configuration.
    pub(super) fn of_webhooks(webhooks: &'v [Value]) -> PreexistingExpressions<'v> {
        let conditions = webhooks.iter().flat_map(|webhook| webhook.items_at("matchConditions"));
        let match_conditions = Preexisting::of(conditions, "expression");
        PreexistingExpressions { match_conditions, ..PreexistingExpressions::default() }
    }
}

/// Expressions of one use that an object had before an update.
#[derive(Debug, Default)]
pub(super) struct Preexisting<'v>(HashSet<&'v str>);

impl<'v> Preexisting<'v> {
    fn of(items: impl IntoIterator<Item = &'v Value>, field: &str) -> Preexisting<'v> {
        let expressions = items.into_iter().map(|item| item.str_at(field));
        Preexisting(expressions.filter(|expression| !expression.is_empty()).collect())
    }

    /// The environment for an expression of the update.
    pub(super) fn environment_of(&self, expression: &str) -> EnvironmentType {
        EnvironmentType::of(self.0.contains(expression))
    }
}

/// The error of an expression that does not compile.
pub(super) fn compile_error(expression: &Expression, path: &FieldPath) -> Option<FieldError> {
    let source = expression.source();
    Some(match expression.error()? {
        CompileError::Invalid(detail) => FieldError::invalid(path, source, &**detail),
        CompileError::Internal(detail) => FieldError::internal(path, &**detail),
    })
}

/// Compiles an expression and returns its error.
pub(super) fn validate_expression(
    compiler: &Compiler,
    source: &str,
    environment_type: EnvironmentType,
    optional: OptionalVariables,
    returns: Returns<'_>,
    path: &FieldPath,
) -> Option<FieldError> {
    compile_error(&compiler.compile(source, environment_type, optional, returns), path)
}

/// As [`validate_expression`], for the expression of a mutation.
pub(super) fn validate_mutation_expression(
    compiler: &Compiler,
    source: &str,
    environment_type: EnvironmentType,
    optional: OptionalVariables,
    returns: Returns<'_>,
    path: &FieldPath,
) -> Option<FieldError> {
    compile_error(&compiler.compile_mutation(source, environment_type, optional, returns), path)
}

/// Validates the match conditions of a webhook or policy; `params` is whether they may use parameters.
pub(super) fn validate_match_conditions(
    conditions: &[Value],
    preexisting: &Preexisting<'_>,
    params: bool,
    path: &FieldPath,
) -> ErrorList {
    let mut errors = ErrorList::new();
    if conditions.len() > MAX_MATCH_CONDITIONS {
        errors.push(FieldError::too_many(path, conditions.len(), MAX_MATCH_CONDITIONS));
    }
    let compiler = Compiler::new();
    let optional = OptionalVariables { params, authorizer: true };
    let mut names = HashSet::new();
    for (index, condition) in conditions.iter().enumerate() {
        if is_enough(&errors) {
            break;
        }
        let path = path.index(index);
        let (name, expression) = (condition.str_at("name"), condition.str_at("expression").trim());
        let expression_path = path.child("expression");
        match expression.is_empty() {
            true => errors.push(FieldError::required(&expression_path, "")),
            false => errors.extend(validate_expression(
                &compiler,
                expression,
                preexisting.environment_of(expression),
                optional,
                Returns::BOOL,
                &expression_path,
            )),
        }
        let name_path = path.child("name");
        errors.extend(validate_qualified_name(name, &name_path));
        if !name.is_empty() && !names.insert(name) {
            errors.push(FieldError::duplicate(&name_path, name));
        }
    }
    errors
}

/// Requires a name with an optional prefix (`example.com/name`).
fn validate_qualified_name(name: &str, path: &FieldPath) -> ErrorList {
    if name.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    is_qualified_name(name).into_iter().map(|message| FieldError::invalid(path, name, message)).collect()
}

/// Validates the variables of a policy, and declares them for the expressions after them.
pub(super) fn validate_variables(
    compiler: &mut Compiler,
    variables: &[Value],
    preexisting: &PreexistingExpressions<'_>,
    optional: OptionalVariables,
    path: &FieldPath,
) -> ErrorList {
    let mut errors = ErrorList::new();
    for (index, variable) in variables.iter().enumerate() {
        if is_enough(&errors) {
            break;
        }
        let path = path.index(index);
        let (name, expression) = (variable.str_at("name"), variable.str_at("expression"));
        if name.trim().is_empty() {
            errors.push(FieldError::required(&path.child("name"), "name is not specified"));
        } else if !pintle_cel::is_identifier(name) {
            errors.push(FieldError::invalid(&path.child("name"), name, "must be a valid CEL identifier"));
        }
        let path = path.child("expression");
        match expression.trim().is_empty() {
            true => errors.push(FieldError::required(&path, "expression is not specified")),
            false => {
                let environment_type = preexisting.validations.environment_of(expression);
                let compiled = compiler.compile_variable(name, expression, environment_type, optional);
                errors.extend(compile_error(&compiled, &path));
            }
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_feature_gates::{EffectiveVersion, FeatureGates, MinorVersion, testing::override_gates};
    use pintle_machinery::json;

    fn check(conditions: Value, params: bool, expected: &[&str]) {
        let items = conditions.as_array().unwrap();
        let errors = validate_match_conditions(items, &Preexisting::default(), params, &FieldPath::new("c"));
        let found: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(found, expected, "{conditions}");
    }

    #[test]
    fn the_conditions_of_webhooks_keep_functions_that_new_ones_may_not_use() {
        let gates = FeatureGates::new(EffectiveVersion::emulating(MinorVersion::new(1, 33)));
        let _gates = override_gates(&gates);
        let webhooks = [json!({"matchConditions": [{"name": "a", "expression": "[1].sort() == [1]"}]})];
        let errors = |preexisting: &PreexistingExpressions<'_>| {
            let conditions = webhooks[0].items_at("matchConditions");
            validate_match_conditions(conditions, &preexisting.match_conditions, false, &FieldPath::new("c"))
                .len()
        };
        assert_eq!(errors(&PreexistingExpressions::default()), 1);
        assert_eq!(errors(&PreexistingExpressions::of_webhooks(&webhooks)), 0);
    }

    #[test]
    fn match_conditions_have_unique_names_and_boolean_expressions() {
        check(json!([{"name": "example.com/a", "expression": "object.x == 1"}]), false, &[]);
        check(json!([{"name": "a", "expression": "params.x == 1"}]), true, &[]);
        check(
            json!([{"name": "a", "expression": " "}, {"name": "a", "expression": "1"}, {"expression": "true"}]),
            false,
            &[
                "c[0].expression: Required value",
                "c[1].expression: Invalid value: \"1\": must evaluate to bool but got int",
                "c[1].name: Duplicate value: \"a\"",
                "c[2].name: Required value",
            ],
        );
        let many: Vec<Value> =
            (0..65).map(|index| json!({"name": format!("c{index}"), "expression": "true"})).collect();
        check(Value::Array(many), false, &["c: Too many: 65: must have at most 64 items"]);
    }

    #[test]
    fn variables_are_identifiers_that_later_expressions_read() {
        let variables = [
            json!({"name": "a", "expression": "1"}),
            json!({"name": "b", "expression": "variables.a + 'x'"}),
            json!({"name": "in", "expression": ""}),
            json!({"name": " ", "expression": "variables.late"}),
            json!({"name": "late", "expression": "1"}),
        ];
        let mut compiler = Compiler::with_variables();
        let optional = OptionalVariables::default();
        let preexisting = PreexistingExpressions::default();
        let errors =
            validate_variables(&mut compiler, &variables, &preexisting, optional, &FieldPath::new("v"));
        let found: Vec<String> = errors.iter().map(|error| error.to_string()).collect();
        assert!(
            found[0].starts_with(
                "v[1].expression: Invalid value: \"variables.a + 'x'\": compilation failed: ERROR"
            ),
            "{found:?}"
        );
        assert_eq!(found[1], "v[2].name: Invalid value: \"in\": must be a valid CEL identifier");
        assert_eq!(found[2], "v[2].expression: Required value: expression is not specified");
        assert_eq!(found[3], "v[3].name: Required value: name is not specified");
        assert!(found[4].contains("undefined field 'late'"), "{found:?}");
        assert_eq!(found.len(), 5);
    }
}
