//! The rules of daemon sets. The count of template changes is kept in an annotation, where older clients read it.

use crate::field_checks::parse_int64;
use crate::rules;
use crate::workload::{self, Workload};
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, Value, ValueExt,
    meta::ObjectMeta,
    validation::{LabelSelectorOptions, label_selector_has_invalid_label_value, validate_label_selector},
};
use pintle_registry::RequestContext;

const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// The rules of daemon sets.
pub(super) struct DaemonSet;

impl Workload for DaemonSet {
    const NAMES_PODS: bool = false;

    fn convert_annotations(&self, object: &mut Value) -> Result<(), String> {
        object.annotation(TEMPLATE_GENERATION).map(parse_int64).transpose().map(drop)
    }

    fn set_defaults(&self, object: &mut Value) {
        workload::set_template_defaults(object);
        if object.str_at("spec.updateStrategy.type").is_empty() {
            object.set("spec.updateStrategy.type", "RollingUpdate");
        }
        if object.str_at("spec.updateStrategy.type") == "RollingUpdate" {
            object.set_default("spec.updateStrategy.rollingUpdate.maxUnavailable", 1);
            object.set_default("spec.updateStrategy.rollingUpdate.maxSurge", 0);
        }
        object.set_default("spec.revisionHistoryLimit", 10);
        // Other versions have a field for the counter, so every object has it, and its writer owns it.
        set_template_generation(object, template_generation(object));
    }

    fn prepare_for_create(&self, _context: &RequestContext<'_>, object: &mut Value) {
        set_template_generation(object, template_generation(object).max(1));
    }

    fn prepare_for_update(&self, object: &mut Value, old: &Value) {
        let changed = rules::differs(object, old, "spec.template");
        set_template_generation(object, template_generation(old) + i64::from(changed));
    }

    fn prepare_for_status_update(&self, object: &mut Value, old: &Value) {
        set_template_generation(object, template_generation(old));
    }

    fn validate_spec(&self, object: &Value, old: Option<&Value>) -> ErrorList {
        let mut errors = ErrorList::new();
        if let Some(old) = old {
            errors.extend(workload::validate_selector_is_kept(object, old));
        }
        errors.extend(validate_spec(object, old));
        errors
    }

    fn validate_status(&self, object: &Value, old: &Value) -> ErrorList {
        let mut errors = workload::validate_status_counts(
            object,
            &[
                "currentNumberScheduled",
                "numberMisscheduled",
                "desiredNumberScheduled",
                "numberReady",
                "observedGeneration",
                "updatedNumberScheduled",
                "numberAvailable",
                "numberUnavailable",
                "collisionCount",
            ],
        );
        errors.extend(workload::validate_collision_count(object, old));
        errors
    }

    fn warns_of_template(&self, object: &Value, old: &Value) -> bool {
        template_generation(object) != template_generation(old)
    }
}

fn template_generation(object: &Value) -> i64 {
    object.annotation(TEMPLATE_GENERATION).and_then(|text| text.parse().ok()).unwrap_or_default()
}

fn set_template_generation(object: &mut Value, generation: i64) {
    let annotations = object.object_at_mut("metadata.annotations");
    annotations.insert(TEMPLATE_GENERATION, generation.to_string().into());
}

fn validate_spec(object: &Value, old: Option<&Value>) -> ErrorList {
    let options = LabelSelectorOptions {
        allow_invalid_label_value: old
            .and_then(|old| old.at("spec.selector"))
            .is_some_and(label_selector_has_invalid_label_value),
        ..LabelSelectorOptions::default()
    };
    let path = FieldPath::new("spec.selector");
    let mut errors = validate_label_selector(rules::value_at(object, path.as_str()), options, &path);
    if let Ok(selector) = workload::selector(object, "") {
        errors.extend(workload::validate_template_is_selected(object, &selector));
    }
    if let Some(selector) = object.at(path.as_str()) {
        errors.extend(workload::validate_selector_not_empty(selector, &path, "daemonset"));
    }
    errors.extend(workload::validate_template(object, &workload::template_options(old)));
    errors.extend(workload::validate_runs_always(object, "DaemonSet"));
    errors.extend(rules::nonnegative(object, "spec.minReadySeconds"));
    errors.extend(validate_rollout(rules::value_at(object, "spec.updateStrategy")));
    errors.extend(rules::nonnegative(object, "spec.revisionHistoryLimit"));
    errors
}

fn validate_rollout(strategy: &Value) -> ErrorList {
    let path = FieldPath::new("spec.updateStrategy");
    let rolling_path = path.child("rollingUpdate");
    match (strategy.str_at("type"), strategy.at("rollingUpdate")) {
        ("OnDelete", _) => ErrorList::new(),
        ("RollingUpdate", None) => vec![FieldError::required(&rolling_path, "")],
        ("RollingUpdate", Some(rolling)) => validate_rolling_update(rolling, &rolling_path),
        (_, _) => {
            let error = FieldError::not_supported(&path, strategy.clone(), &["RollingUpdate", "OnDelete"]);
            vec![pintle_internal_form::show(error, "apps.DaemonSetUpdateStrategy")]
        }
    }
}

fn validate_rolling_update(rolling: &Value, path: &FieldPath) -> ErrorList {
    let (unavailable_path, surge_path) = (path.child("maxUnavailable"), path.child("maxSurge"));
    let (unavailable, surge) =
        (rules::value_at(rolling, "maxUnavailable"), rules::value_at(rolling, "maxSurge"));
    let mut errors = workload::validate_int_or_percent(unavailable, &unavailable_path);
    errors.extend(workload::validate_int_or_percent(surge, &surge_path));
    errors.extend(workload::validate_at_most_100_percent(unavailable, &unavailable_path));
    errors.extend(workload::validate_at_most_100_percent(surge, &surge_path));
    match (workload::int_or_percent(unavailable) != 0, workload::int_or_percent(surge) != 0) {
        (true, true) => {
            let detail = "may not be set when maxUnavailable is non-zero";
            errors.push(FieldError::invalid(&surge_path, surge.clone(), detail));
        }
        (false, false) => {
            errors.push(FieldError::required(&unavailable_path, "cannot be 0 when maxSurge is 0"));
        }
        _ => {}
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;
    use pintle_registry::Strategy;

    #[test]
    fn the_annotation_of_the_template_generation_is_an_integer() {
        let convert = |text: &str| {
            DaemonSet
                .convert_annotations(&mut json!({"metadata": {"annotations": {TEMPLATE_GENERATION: text}}}))
        };
        assert_eq!((convert("7"), DaemonSet.convert_annotations(&mut json!({}))), (Ok(()), Ok(())));
        assert_eq!(convert("x"), Err("strconv.ParseInt: parsing \"x\": invalid syntax".to_owned()));
        assert_eq!(
            convert("99999999999999999999"),
            Err("strconv.ParseInt: parsing \"99999999999999999999\": value out of range".to_owned())
        );
        let strategy = crate::workload::WorkloadStrategy(DaemonSet);
        let mut object = json!({"metadata": {"annotations": {TEMPLATE_GENERATION: "x"}}});
        assert!(strategy.coerce(&mut object, true).is_err());
        assert!(strategy.coerce(&mut object, false).is_ok(), "a stored object");
    }

    #[test]
    fn nodes_are_updated_by_taking_away_or_by_adding() {
        let rows: [(Value, &[&str]); 4] = [
            (json!({}), &[]),
            (
                json!({"rollingUpdate": {"maxSurge": 1}}),
                &[
                    "spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: 1: may not be set when maxUnavailable is non-zero",
                ],
            ),
            (json!({"rollingUpdate": {"maxSurge": "10%", "maxUnavailable": 0}}), &[]),
            (
                json!({"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}),
                &[
                    "spec.updateStrategy.rollingUpdate.maxUnavailable: Required value: cannot be 0 when maxSurge is 0",
                ],
            ),
        ];
        for (strategy, messages) in rows {
            let mut object = json!({"spec": {"updateStrategy": strategy}});
            DaemonSet.set_defaults(&mut object);
            let errors: Vec<String> =
                validate_rollout(&object["spec"]["updateStrategy"]).iter().map(ToString::to_string).collect();
            assert_eq!(errors, messages);
        }
    }
}
