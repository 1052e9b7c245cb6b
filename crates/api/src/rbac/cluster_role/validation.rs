//! Validates cluster roles.

use crate::{
    rbac::{metadata, policy_rule::validate_rules},
    rules,
};
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, Value, ValueExt,
    validation::{LabelSelectorOptions, validate_label_selector},
};

/// The selectors of the roles that an aggregated role consists of.
const SELECTORS: &str = "aggregationRule.clusterRoleSelectors";

/// Validates a new role.
pub(super) fn validate(role: &Value) -> ErrorList {
    validate_since(role, None)
}

/// Validates an update of a role.
pub(super) fn validate_update(role: &Value, old: &Value) -> ErrorList {
    let mut errors = validate_since(role, Some(old));
    errors.extend(rules::metadata_update(role, old));
    errors
}

fn validate_since(role: &Value, old: Option<&Value>) -> ErrorList {
    let mut errors = metadata::validate(role, false);
    errors.extend(validate_rules(role, false));
    if role.at("aggregationRule").is_none() {
        return errors;
    }
    let path = FieldPath::new("aggregationRule").child("clusterRoleSelectors");
    let selectors = role.items_at(SELECTORS);
    if selectors.is_empty() {
        let detail = "at least one clusterRoleSelector required if aggregationRule is non-nil";
        errors.push(FieldError::required(&path, detail));
    }
    let options =
        LabelSelectorOptions { allow_invalid_label_value: old.is_some_and(has_invalid), ..strict() };
    for (index, selector) in selectors.iter().enumerate() {
        let path = path.index(index);
        errors.extend(validate_label_selector(selector, options, &path));
        // A selector accepted by ratcheting still selects nothing.
        if !validate_label_selector(selector, strict(), &path).is_empty() {
            errors.push(FieldError::invalid(&path, Value::Null, "invalid label selector."));
        }
    }
    errors
}

fn strict() -> LabelSelectorOptions {
    LabelSelectorOptions::default()
}

fn has_invalid(role: &Value) -> bool {
    let path = FieldPath::default();
    let mut selectors = role.items_at(SELECTORS).iter();
    selectors.any(|selector| !validate_label_selector(selector, strict(), &path).is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    #[test]
    fn aggregation_needs_selectors_that_select() {
        let check = |rule: Value, expected: &[&str]| {
            let errors = validate(&json!({"metadata": {"name": "a:b"}, "aggregationRule": rule}));
            assert_eq!(errors.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
        };
        check(Value::Null, &[]);
        check(json!({"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}), &[]);
        check(
            json!({}),
            &[
                "aggregationRule.clusterRoleSelectors: Required value: at least one clusterRoleSelector required if \
               aggregationRule is non-nil",
            ],
        );
        check(
            json!({"clusterRoleSelectors": [{"matchExpressions": [{"key": "a", "operator": "Near"}]}]}),
            &[
                r#"aggregationRule.clusterRoleSelectors[0].matchExpressions[0].operator: Invalid value: "Near": not a valid selector operator"#,
                "aggregationRule.clusterRoleSelectors[0]: Invalid value: null: invalid label selector.",
            ],
        );
    }
}
