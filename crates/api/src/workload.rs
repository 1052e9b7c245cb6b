//! Rules that the workloads share: a selector and a pod template that must match, replica counts, and limits of a
//! rollout.

mod strategy;

pub(crate) use strategy::{Workload, WorkloadStatusStrategy, WorkloadStrategy};

use crate::core::pod_template::{self, PodValidationOptions};
use crate::gated_fields::GatedFields;
use crate::rules;
use pintle_feature_gates::Gate;
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, Value, ValueExt,
    int_or_string::percent_value,
    selectors::LabelSelector,
    validation::{LabelSelectorOptions, is_valid_percent, validate_label_selector},
};

const TEMPLATE: &str = "spec.template";
/// The counts of replicas behind a gate.
pub(crate) const GATED_REPLICAS: &[GatedFields] = &[GatedFields {
    gates: &[Gate::DeploymentReplicaSetTerminatingReplicas],
    fields: &["status.terminatingReplicas"],
}];
/// The form of selectors in messages.
pub(crate) const SELECTOR: &str = "*@LabelSelector";

/// Defaults the pod template, which is created when absent.
pub(crate) fn set_template_defaults(object: &mut Value) {
    object.object_at_mut("spec.template.spec");
    set_optional_template_defaults(object);
}

/// Defaults the pod template if present.
pub(crate) fn set_optional_template_defaults(object: &mut Value) {
    if let Some(template) = object.at_mut(TEMPLATE) {
        template.object_at_mut("spec");
        pod_template::set_defaults(template);
    }
}

/// The validation options for the template; `old` is the stored object on update.
pub(crate) fn template_options(old: Option<&Value>) -> PodValidationOptions {
    PodValidationOptions::for_template(old.map(|old| rules::value_at(old, TEMPLATE)))
}

/// Validates the template by itself.
pub(crate) fn validate_template(object: &Value, options: &PodValidationOptions) -> ErrorList {
    pod_template::validate(rules::value_at(object, TEMPLATE), &FieldPath::new(TEMPLATE), options)
}

/// Validates the labels and annotations of the template.
pub(crate) fn validate_template_metadata(object: &Value, options: &PodValidationOptions) -> ErrorList {
    pod_template::validate_metadata(rules::value_at(object, TEMPLATE), &FieldPath::new(TEMPLATE), options)
}

/// Validates the selector by itself; `kind` is the name of the kind in the message.
pub(crate) fn validate_selector(object: &Value, options: LabelSelectorOptions, kind: &str) -> ErrorList {
    let path = FieldPath::new("spec.selector");
    let Some(selector) = object.at(path.as_str()) else {
        return ErrorList::new();
    };
    let mut errors = validate_label_selector(selector, options, &path);
    errors.extend(validate_selector_not_empty(selector, &path, kind));
    errors
}

/// Rejects a selector that selects everything.
pub(crate) fn validate_selector_not_empty(selector: &Value, path: &FieldPath, kind: &str) -> ErrorList {
    if !selector.map_at("matchLabels").is_empty() || !selector.items_at("matchExpressions").is_empty() {
        return ErrorList::new();
    }
    vec![FieldError::invalid(path, selector.clone(), format!("empty selector is invalid for {kind}"))]
}

/// The selector, or an error when it cannot be evaluated.
pub(crate) fn selector(object: &Value, detail: &str) -> Result<LabelSelector, FieldError> {
    let selector = object.at("spec.selector");
    LabelSelector::from_object(selector).map_err(|_| {
        let selector = selector.unwrap_or(&Value::Null);
        let error = FieldError::invalid(&FieldPath::new("spec.selector"), selector.clone(), detail);
        pintle_internal_form::show(error, SELECTOR)
    })
}

/// Requires that the selector selects the template's pods.
pub(crate) fn validate_template_is_selected(object: &Value, selector: &LabelSelector) -> ErrorList {
    let labels = object.at("spec.template.metadata.labels");
    if selector.matches_labels(labels) {
        return ErrorList::new();
    }
    let path = FieldPath::new("spec.template.metadata.labels");
    let labels = labels.cloned().unwrap_or_default();
    vec![FieldError::invalid(&path, labels, "`selector` does not match template `labels`")]
}

/// Requires pods that restart always, since the workload replaces them.
pub(crate) fn validate_runs_always(object: &Value, kind: &str) -> ErrorList {
    let path = FieldPath::new("spec.template.spec");
    let mut errors = ErrorList::new();
    let restart_policy = object.str_at("spec.template.spec.restartPolicy");
    if restart_policy != "Always" {
        errors.push(FieldError::not_supported(&path.child("restartPolicy"), restart_policy, &["Always"]));
    }
    if object.at("spec.template.spec.activeDeadlineSeconds").is_some() {
        let detail = format!("activeDeadlineSeconds in {kind} is not Supported");
        errors.push(FieldError::forbidden(&path.child("activeDeadlineSeconds"), detail));
    }
    errors
}

/// Validates selector and template of workloads with replica sets.
pub(crate) fn validate_selector_and_template(object: &Value, options: &PodValidationOptions) -> ErrorList {
    let mut errors = match object.at("spec.selector") {
        None => vec![FieldError::required(&FieldPath::new("spec.selector"), "")],
        Some(_) => validate_selector(object, LabelSelectorOptions::default(), "deployment"),
    };
    match selector(object, "invalid label selector") {
        Err(error) => errors.push(error),
        Ok(selector) => {
            if !selector.is_empty() {
                errors.extend(validate_template_is_selected(object, &selector));
            }
            errors.extend(validate_template(object, options));
            errors.extend(validate_runs_always(object, "ReplicaSet"));
        }
    }
    errors
}

/// Rejects a change of the selector, which determines the pods that a workload owns.
pub(crate) fn validate_selector_is_kept(object: &Value, old: &Value) -> ErrorList {
    let (new, old) = (rules::value_at(object, "spec.selector"), rules::value_at(old, "spec.selector"));
    pintle_internal_form::validate_immutable(new, old, &FieldPath::new("spec.selector"), SELECTOR)
}

/// Requires a number or a percentage.
pub(crate) fn validate_int_or_percent(value: &Value, path: &FieldPath) -> ErrorList {
    match value {
        Value::String(text) => is_valid_percent(text)
            .into_iter()
            .map(|message| FieldError::invalid(path, text.as_str(), message))
            .collect(),
        value => rules::nonnegative_number(value.as_i64().unwrap_or_default(), path),
    }
}

/// Rejects a percentage above 100.
pub(crate) fn validate_at_most_100_percent(value: &Value, path: &FieldPath) -> ErrorList {
    match percent_value(value) {
        Some(percent) if percent > 100 => {
            vec![FieldError::invalid(path, value.clone(), "must not be greater than 100%")]
        }
        _ => ErrorList::new(),
    }
}

/// The number, also of a text that consists of one, or the number of percent; other values count as 0.
pub(crate) fn int_or_percent(value: &Value) -> i64 {
    let number = || value.as_i64().or_else(|| value.as_str()?.parse().ok());
    percent_value(value).or_else(number).unwrap_or_default()
}

/// Requires numbers in the status that are not negative.
pub(crate) fn validate_status_counts(object: &Value, names: &[&str]) -> ErrorList {
    names.iter().flat_map(|name| rules::nonnegative(object, &format!("status.{name}"))).collect()
}

/// Requires numbers in the status that do not exceed another one.
pub(crate) fn validate_status_bounds(object: &Value, bounds: &[(&str, &str, &str)]) -> ErrorList {
    let count = |name: &str| object.i64_at(&format!("status.{name}")).unwrap_or_default();
    let over = bounds.iter().filter(|(name, bound, _)| count(name) > count(bound));
    over.map(|(name, _, detail)| {
        FieldError::invalid(&FieldPath::new("status").child(name), count(name), *detail)
    })
    .collect()
}

/// Rejects a decrease of the collision count, after which names could repeat.
pub(crate) fn validate_collision_count(object: &Value, old: &Value) -> ErrorList {
    let path = "status.collisionCount";
    match (object.i64_at(path), old.i64_at(path)) {
        (new, Some(old)) if new.is_none_or(|new| new < old) => {
            let new = new.unwrap_or_default();
            vec![FieldError::invalid(&FieldPath::new(path), new, "cannot be decremented")]
        }
        _ => ErrorList::new(),
    }
}

/// Validates the status of replica sets and replication controllers.
pub(crate) fn validate_replicas_status(object: &Value) -> ErrorList {
    const OVER_REPLICAS: &str = "cannot be greater than status.replicas";
    let mut errors = validate_status_counts(
        object,
        &[
            "replicas",
            "fullyLabeledReplicas",
            "readyReplicas",
            "availableReplicas",
            "observedGeneration",
            "terminatingReplicas",
        ],
    );
    errors.extend(validate_status_bounds(
        object,
        &[
            ("fullyLabeledReplicas", "replicas", OVER_REPLICAS),
            ("readyReplicas", "replicas", OVER_REPLICAS),
            ("availableReplicas", "replicas", OVER_REPLICAS),
            ("availableReplicas", "readyReplicas", "cannot be greater than readyReplicas"),
        ],
    ));
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    fn check(errors: &ErrorList, messages: &[&str]) {
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(errors, messages);
    }

    #[test]
    fn selectors_must_be_there_and_select_the_template() {
        let mismatch = "spec.template.metadata.labels: Invalid value: {\"app\":\"x\"}: `selector` does not match template `labels`";
        let rows: [(Value, &[&str]); 4] = [
            (Value::Null, &["spec.selector: Required value", mismatch]),
            (json!({}), &["spec.selector: Invalid value: {}: empty selector is invalid for deployment"]),
            (json!({"matchLabels": {"app": "y"}}), &[mismatch]),
            (json!({"matchLabels": {"app": "x"}}), &[]),
        ];
        for (selector, messages) in rows {
            let mut object = json!({"spec": {
                "template": {
                    "metadata": {"labels": {"app": "x"}},
                    "spec": {"containers": [{"name": "c", "image": "i"}]},
                },
            }});
            object.set("spec.selector", selector);
            set_template_defaults(&mut object);
            let options = template_options(None);
            check(&validate_selector_and_template(&object, &options), messages);
        }
    }

    #[test]
    fn selectors_that_cannot_be_evaluated_are_shown_whole() {
        let object = json!({"spec": {"selector": {
            "matchExpressions": [{"key": "app", "operator": "In"}],
            "matchLabels": {"a": "b"},
        }}});
        let error = selector(&object, "invalid label selector").unwrap_err();
        assert_eq!(
            error.to_string(),
            r#"spec.selector: Invalid value: {"matchLabels":{"a":"b"},"matchExpressions":[{"key":"app","operator":"In"}]}: invalid label selector"#
        );
    }

    #[test]
    fn rollouts_go_by_numbers_or_percentages() {
        let path = FieldPath::new("p");
        check(
            &validate_int_or_percent(&json!(-1), &path),
            &["p: Invalid value: -1: must be greater than or equal to 0"],
        );
        check(&validate_int_or_percent(&json!("110%"), &path), &[]);
        check(
            &validate_at_most_100_percent(&json!("110%"), &path),
            &["p: Invalid value: \"110%\": must not be greater than 100%"],
        );
        check(&validate_at_most_100_percent(&json!(110), &path), &[]);
        assert_eq!((int_or_percent(&json!("0%")), int_or_percent(&json!(3))), (0, 3));
        assert_eq!(int_or_percent(&json!("lots")), 0);
    }
}
