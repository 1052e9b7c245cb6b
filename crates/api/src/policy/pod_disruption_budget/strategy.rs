//! The strategy of pod disruption budgets.

use crate::{field_checks, rules, workload};
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, Value, ValueExt, json,
    validation::{
        LabelSelectorOptions, label_selector_has_invalid_label_value, validate_conditions,
        validate_label_selector,
    },
};
use pintle_registry::{RequestContext, Strategy};

pub(super) struct PodDisruptionBudgetStrategy;

impl Strategy for PodDisruptionBudgetStrategy {
    fn reset_fields(&self) -> &'static [&'static str] {
        &["status"]
    }

    fn prepare_for_create(&self, _context: &RequestContext<'_>, object: &mut Value) {
        object.set("status", json!({}));
        object.set("metadata.generation", 1);
    }

    fn validate(&self, _context: &RequestContext<'_>, object: &Value) -> ErrorList {
        validate_spec(object, LabelSelectorOptions::default())
    }

    fn prepare_for_update(&self, _context: &RequestContext<'_>, object: &mut Value, old: &Value) {
        rules::keep(object, old, "status");
        rules::count_generation(object, old);
    }

    fn validate_update(&self, _context: &RequestContext<'_>, object: &Value, old: &Value) -> ErrorList {
        let options = LabelSelectorOptions {
            allow_invalid_label_value: old
                .at("spec.selector")
                .is_some_and(label_selector_has_invalid_label_value),
            ..LabelSelectorOptions::default()
        };
        validate_spec(object, options)
    }

    fn allow_unconditional_update(&self) -> bool {
        false
    }
}

/// The strategy of the `status` subresource.
pub(super) struct StatusStrategy;

impl Strategy for StatusStrategy {
    fn reset_fields(&self) -> &'static [&'static str] {
        &["spec"]
    }

    fn prepare_for_update(&self, _context: &RequestContext<'_>, object: &mut Value, old: &Value) {
        rules::keep(object, old, "spec");
    }

    fn validate_update(&self, _context: &RequestContext<'_>, object: &Value, _old: &Value) -> ErrorList {
        let conditions = object.items_at("status.conditions");
        let mut errors = validate_conditions(conditions, &FieldPath::new("status.conditions"));
        errors.extend(workload::validate_status_counts(
            object,
            &["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"],
        ));
        errors
    }

    fn allow_unconditional_update(&self) -> bool {
        false
    }
}

fn validate_spec(object: &Value, options: LabelSelectorOptions) -> ErrorList {
    let path = FieldPath::new("spec");
    let spec = rules::value_at(object, "spec");
    let mut errors = ErrorList::new();
    if spec.at("minAvailable").is_some() && spec.at("maxUnavailable").is_some() {
        let detail = "minAvailable and maxUnavailable cannot be both set";
        let error = FieldError::invalid(&path, spec.clone(), detail);
        errors.push(pintle_internal_form::show(error, "policy.PodDisruptionBudgetSpec"));
    }
    for name in ["minAvailable", "maxUnavailable"] {
        if let Some(value) = spec.at(name) {
            errors.extend(workload::validate_int_or_percent(value, &path.child(name)));
            errors.extend(workload::validate_at_most_100_percent(value, &path.child(name)));
        }
    }
    let selector = rules::value_at(spec, "selector");
    errors.extend(validate_label_selector(selector, options, &path.child("selector")));
    if let Some(policy) = spec.at("unhealthyPodEvictionPolicy").and_then(Value::as_str) {
        let path = path.child("unhealthyPodEvictionPolicy");
        errors.extend(field_checks::supported(policy, &["AlwaysAllow", "IfHealthyBudget"], &path));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_are_numbers_or_percentages() {
        let rows: [(Value, &[&str]); 4] = [
            (json!({"minAvailable": "50%"}), &[]),
            (
                json!({"minAvailable": -1}),
                &["spec.minAvailable: Invalid value: -1: must be greater than or equal to 0"],
            ),
            (
                json!({"maxUnavailable": "101%"}),
                &["spec.maxUnavailable: Invalid value: \"101%\": must not be greater than 100%"],
            ),
            (
                json!({"unhealthyPodEvictionPolicy": "Never"}),
                &[
                    "spec.unhealthyPodEvictionPolicy: Unsupported value: \"Never\": supported values: \"AlwaysAllow\", \"IfHealthyBudget\"",
                ],
            ),
        ];
        for (spec, messages) in rows {
            let errors = validate_spec(&json!({"spec": spec}), LabelSelectorOptions::default());
            let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
            assert_eq!(errors, messages);
        }
        let both = json!({"spec": {"minAvailable": 1, "maxUnavailable": 1}});
        assert_eq!(validate_spec(&both, LabelSelectorOptions::default()).len(), 1);
    }
}
