//! Validates device taint rules.

use crate::{
    resource::{
        names::{validate_driver_name, validate_label, validate_pool_name},
        resource_slice::{validate_taint_effect, validate_taint_names},
    },
    rules,
};
use pintle_machinery::{ErrorList, FieldError, FieldPath, Value, ValueExt, validation::validate_conditions};

const CONDITIONS_MAX: usize = 8;

/// Validates a new rule.
pub(super) fn validate(rule: &Value) -> ErrorList {
    let mut errors = rules::metadata(rule, false);
    errors.extend(validate_spec(rule, None));
    errors
}

/// Validates an update of a rule.
pub(super) fn validate_update(rule: &Value, old: &Value) -> ErrorList {
    let mut errors = rules::metadata_update(rule, old);
    errors.extend(validate_spec(rule, Some(old)));
    errors
}

/// Validates an update of the status.
pub(super) fn validate_status_update(rule: &Value, old: &Value) -> ErrorList {
    let mut errors = rules::metadata_update(rule, old);
    let (conditions, path) = (rule.items_at("status.conditions"), FieldPath::new("status.conditions"));
    errors.extend(validate_conditions(conditions, &path));
    if conditions.len() > CONDITIONS_MAX {
        errors.push(FieldError::too_many(&path, conditions.len(), CONDITIONS_MAX));
    }
    errors
}

fn validate_spec(rule: &Value, old: Option<&Value>) -> ErrorList {
    let path = FieldPath::new("spec");
    let mut errors = ErrorList::new();
    let mut check = |member: &str, check: fn(&str, &FieldPath) -> ErrorList| {
        if let Some(text) = rule.at(&format!("spec.deviceSelector.{member}")).and_then(Value::as_str) {
            errors.extend(check(text, &path.child("deviceSelector").child(member)));
        }
    };
    check("driver", validate_driver_name);
    check("pool", validate_pool_name);
    check("device", validate_label);
    let (taint, path) = (rules::value_at(rule, "spec.taint"), path.child("taint"));
    errors.extend(validate_taint_names(taint, &path));
    if old.is_none_or(|old| old.str_at("spec.taint.effect") != taint.str_at("effect")) {
        errors.extend(validate_taint_effect(taint, &path));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    #[test]
    fn rules_are_checked() {
        let check = |spec: Value, fields: &[&str]| {
            let errors = validate(&json!({"metadata": {"name": "a"}, "spec": spec}));
            assert_eq!(errors.iter().map(|error| error.field.as_str()).collect::<Vec<_>>(), fields);
        };
        check(json!({"taint": {"key": "a.com/b", "effect": "None"}}), &[]);
        check(json!({"deviceSelector": {}, "taint": {"key": "k", "effect": "NoExecute"}}), &[]);
        check(json!({}), &["spec.taint.key", "spec.taint.key", "spec.taint.effect"]);
        check(
            json!({"deviceSelector": {"driver": "!", "pool": "", "device": "X"}, "taint": {"key": "k", "effect": "Odd"}}),
            &[
                "spec.deviceSelector.driver",
                "spec.deviceSelector.pool",
                "spec.deviceSelector.device",
                "spec.taint.effect",
            ],
        );
    }
}
