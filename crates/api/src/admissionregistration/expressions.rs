//! Validates the expressions of policies and webhooks.

use pintle_admission_cel::{CompileError, Compiler, Expression, OptionalVariables, Returns};
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, Value, ValueExt, error_list::is_enough, validation::is_qualified_name,
};
use std::collections::HashSet;

/// The maximum number of match conditions.
const MAX_MATCH_CONDITIONS: usize = 64;

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
    optional: OptionalVariables,
    returns: Returns<'_>,
    path: &FieldPath,
) -> Option<FieldError> {
    compile_error(&compiler.compile(source, optional, returns), path)
}

/// As [`validate_expression`], for the expression of a mutation.
pub(super) fn validate_mutation_expression(
    compiler: &Compiler,
    source: &str,
    optional: OptionalVariables,
    returns: Returns<'_>,
    path: &FieldPath,
) -> Option<FieldError> {
    compile_error(&compiler.compile_mutation(source, optional, returns), path)
}

/// Validates the match conditions of a webhook or policy; `params` is whether they may use parameters.
pub(super) fn validate_match_conditions(conditions: &[Value], params: bool, path: &FieldPath) -> ErrorList {
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
                errors.extend(compile_error(&compiler.compile_variable(name, expression, optional), &path));
            }
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    fn check(conditions: Value, params: bool, expected: &[&str]) {
        let items = conditions.as_array().unwrap();
        let errors = validate_match_conditions(items, params, &FieldPath::new("c"));
        let found: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(found, expected, "{conditions}");
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
        let errors = validate_variables(&mut compiler, &variables, optional, &FieldPath::new("v"));
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
