//! The rules of deployments.

use crate::field_checks::parse_int64;
use crate::gated_fields::GatedFields;
use crate::rules;
use crate::workload::{self, Workload};
use pintle_machinery::{ErrorList, FieldError, FieldPath, Value, ValueExt, meta::ObjectMeta};

/// The annotation that holds the revision of a rollback, a field in older versions.
const ROLLBACK_TO: &str = "deprecated.deployment.rollback.to";

/// The rules of deployments.
pub(super) struct Deployment;

impl Workload for Deployment {
    const GATED: &'static [GatedFields] = workload::GATED_REPLICAS;

    const RESET_BY_STATUS: &'static [&'static str] = &["spec", "metadata.labels"];

    fn convert_annotations(&self, object: &mut Value) -> Result<(), String> {
        let Some(revision) = object.annotation(ROLLBACK_TO).map(str::to_owned) else { return Ok(()) };
        let annotations = object.object_at_mut("metadata.annotations");
        if revision.is_empty() {
            annotations.remove(ROLLBACK_TO);
            return Ok(());
        }
        let parsed = parse_int64(&revision)
            .map_err(|why| format!("failed to parse annotation[{ROLLBACK_TO}]={revision} as int64: {why}"))?;
        annotations.insert(ROLLBACK_TO, parsed.to_string().into());
        Ok(())
    }

    fn set_defaults(&self, object: &mut Value) {
        workload::set_template_defaults(object);
        object.set_default("spec.replicas", 1);
        if object.str_at("spec.strategy.type").is_empty() {
            object.set("spec.strategy.type", "RollingUpdate");
        }
        if object.str_at("spec.strategy.type") == "RollingUpdate" {
            object.set_default("spec.strategy.rollingUpdate.maxUnavailable", "25%");
            object.set_default("spec.strategy.rollingUpdate.maxSurge", "25%");
        }
        object.set_default("spec.revisionHistoryLimit", 10);
        object.set_default("spec.progressDeadlineSeconds", 600);
    }

    /// A change of annotations increments the generation: controllers copy them to replica sets.
    fn changes_generation(&self, object: &Value, old: &Value) -> bool {
        rules::differs(object, old, "spec") || rules::differs(object, old, "metadata.annotations")
    }

    fn validate_spec(&self, object: &Value, old: Option<&Value>) -> ErrorList {
        let mut errors = validate_spec(object, old);
        if let Some(old) = old {
            errors.extend(workload::validate_selector_is_kept(object, old));
        }
        errors
    }

    fn validate_status(&self, object: &Value, old: &Value) -> ErrorList {
        const OVER_REPLICAS: &str = "cannot be greater than status.replicas";
        let mut errors = workload::validate_status_counts(
            object,
            &[
                "observedGeneration",
                "replicas",
                "updatedReplicas",
                "readyReplicas",
                "availableReplicas",
                "unavailableReplicas",
                "terminatingReplicas",
                "collisionCount",
            ],
        );
        errors.extend(workload::validate_status_bounds(
            object,
            &[
                ("updatedReplicas", "replicas", OVER_REPLICAS),
                ("readyReplicas", "replicas", OVER_REPLICAS),
                ("availableReplicas", "replicas", OVER_REPLICAS),
                ("availableReplicas", "readyReplicas", "cannot be greater than readyReplicas"),
            ],
        ));
        errors.extend(workload::validate_collision_count(object, old));
        errors
    }
}

fn validate_spec(object: &Value, old: Option<&Value>) -> ErrorList {
    let mut errors = rules::nonnegative(object, "spec.replicas");
    let options = workload::template_options(old);
    errors.extend(workload::validate_selector_and_template(object, &options));
    errors.extend(validate_rollout(rules::value_at(object, "spec.strategy")));
    errors.extend(rules::nonnegative(object, "spec.minReadySeconds"));
    errors.extend(rules::nonnegative(object, "spec.revisionHistoryLimit"));
    errors.extend(rules::nonnegative(object, "spec.progressDeadlineSeconds"));
    let min_ready = object.i64_at("spec.minReadySeconds").unwrap_or_default();
    let path = FieldPath::new("spec.progressDeadlineSeconds");
    if let Some(deadline) = object.i64_at(path.as_str()).filter(|deadline| *deadline <= min_ready) {
        errors.push(FieldError::invalid(&path, deadline, "must be greater than minReadySeconds"));
    }
    errors
}

fn validate_rollout(strategy: &Value) -> ErrorList {
    let path = FieldPath::new("spec.strategy");
    let rolling_path = path.child("rollingUpdate");
    match (strategy.str_at("type"), strategy.at("rollingUpdate")) {
        ("Recreate", None) => ErrorList::new(),
        ("Recreate", Some(_)) => vec![FieldError::forbidden(
            &rolling_path,
            "may not be specified when strategy `type` is 'Recreate'",
        )],
        ("RollingUpdate", None) => {
            vec![FieldError::required(&rolling_path, "this should be defaulted and never be nil")]
        }
        ("RollingUpdate", Some(rolling)) => validate_rolling_update(rolling, &rolling_path),
        (_, _) => {
            let error = FieldError::not_supported(&path, strategy.clone(), &["Recreate", "RollingUpdate"]);
            vec![pintle_internal_form::show(error, "apps.DeploymentStrategy")]
        }
    }
}

fn validate_rolling_update(rolling: &Value, path: &FieldPath) -> ErrorList {
    let (unavailable_path, surge_path) = (path.child("maxUnavailable"), path.child("maxSurge"));
    let (unavailable, surge) =
        (rules::value_at(rolling, "maxUnavailable"), rules::value_at(rolling, "maxSurge"));
    let mut errors = workload::validate_int_or_percent(unavailable, &unavailable_path);
    errors.extend(workload::validate_int_or_percent(surge, &surge_path));
    if workload::int_or_percent(unavailable) == 0 && workload::int_or_percent(surge) == 0 {
        let detail = "may not be 0 when `maxSurge` is 0";
        errors.push(FieldError::invalid(&unavailable_path, unavailable.clone(), detail));
    }
    errors.extend(workload::validate_at_most_100_percent(unavailable, &unavailable_path));
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    #[test]
    fn the_annotation_of_a_rollback_is_an_integer() {
        let convert = |text: &str| {
            let mut object = json!({"metadata": {"annotations": {"a": "b", ROLLBACK_TO: text}}});
            let converted = Deployment.convert_annotations(&mut object);
            converted.map(|()| object["metadata"]["annotations"].clone())
        };
        assert_eq!(convert("+7"), Ok(json!({"a": "b", ROLLBACK_TO: "7"})));
        assert_eq!(convert(""), Ok(json!({"a": "b"})));
        let why = "failed to parse annotation[deprecated.deployment.rollback.to]=x as int64: \
                   strconv.ParseInt: parsing \"x\": invalid syntax";
        assert_eq!(convert("x"), Err(why.to_owned()));
    }

    #[test]
    fn a_rollout_must_be_able_to_make_progress() {
        let rows: [(Value, &[&str]); 6] = [
            (json!({}), &[]),
            (json!({"type": "Recreate"}), &[]),
            (
                json!({"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}),
                &[
                    "spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'",
                ],
            ),
            (
                json!({"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}),
                &[
                    "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge` is 0",
                ],
            ),
            (
                json!({"rollingUpdate": {"maxSurge": -1, "maxUnavailable": "110%"}}),
                &[
                    "spec.strategy.rollingUpdate.maxSurge: Invalid value: -1: must be greater than or equal to 0",
                    "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: \"110%\": must not be greater than 100%",
                ],
            ),
            (
                json!({"type": "BlueGreen"}),
                &[
                    "spec.strategy: Unsupported value: {\"Type\":\"BlueGreen\",\"RollingUpdate\":null}: supported values: \"Recreate\", \"RollingUpdate\"",
                ],
            ),
        ];
        for (strategy, messages) in rows {
            let mut object = json!({"spec": {"strategy": strategy}});
            Deployment.set_defaults(&mut object);
            let errors: Vec<String> =
                validate_rollout(&object["spec"]["strategy"]).iter().map(ToString::to_string).collect();
            assert_eq!(errors, messages);
        }
    }

    #[test]
    fn defaults_fill_what_was_left_out() {
        let mut object = json!({"spec": {"replicas": 0, "strategy": {"rollingUpdate": {"maxSurge": 2}}}});
        Deployment.set_defaults(&mut object);
        let once = object.clone();
        Deployment.set_defaults(&mut object);
        assert_eq!(object, once);
        assert_eq!(
            object["spec"]["strategy"],
            json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 2, "maxUnavailable": "25%"}})
        );
        assert_eq!(object["spec"]["replicas"], json!(0));
        assert_eq!(object["spec"]["progressDeadlineSeconds"], json!(600));
    }
}
