//! The rules of replication controllers. Their selector is a plain map, and mutable.

use crate::core::pod_template;
use crate::rules;
use crate::workload::{self, Workload};
use pintle_machinery::{ErrorList, FieldError, FieldPath, Value, ValueExt, selectors::LabelSelector};

/// The rules of replication controllers.
pub(super) struct ReplicationController;

impl Workload for ReplicationController {
    const ORPHANS_DEPENDENTS: bool = true;

    fn set_defaults(&self, object: &mut Value) {
        workload::set_optional_template_defaults(object);
        let labels = object.map_at("spec.template.metadata.labels").clone();
        if !labels.is_empty() {
            for path in ["spec.selector", "metadata.labels"] {
                if object.map_at(path).is_empty() {
                    object.set(path, labels.clone());
                }
            }
        }
        object.set_default("spec.replicas", 1);
    }

    fn validate_metadata(&self, object: &Value) -> ErrorList {
        rules::metadata_of_any_prefix(object, true)
    }

    fn validate_spec(&self, object: &Value, old: Option<&Value>) -> ErrorList {
        validate_spec(object, old)
    }

    /// On update, the reference takes the stored template for the new one.
    fn template_warnings(&self, object: &Value, old: Option<&Value>) -> Vec<String> {
        let (new, old) = match old {
            Some(stored) => (stored, Some(object)),
            None => (object, None),
        };
        let old = old.and_then(|old| old.at(Self::TEMPLATE));
        pod_template::warnings(rules::value_at(new, Self::TEMPLATE), old, &FieldPath::new(Self::TEMPLATE))
    }

    fn validate_status(&self, object: &Value, _old: &Value) -> ErrorList {
        workload::validate_replicas_status(object)
    }
}

fn validate_spec(object: &Value, old: Option<&Value>) -> ErrorList {
    let mut errors = rules::nonnegative(object, "spec.minReadySeconds");
    let selector = LabelSelector::from_set(object.at("spec.selector"));
    if selector.is_empty() {
        errors.push(FieldError::required(&FieldPath::new("spec.selector"), ""));
    }
    errors.extend(rules::nonnegative(object, "spec.replicas"));
    if object.at("spec.template").is_none() {
        errors.push(FieldError::required(&FieldPath::new("spec.template"), ""));
        return errors;
    }
    errors.extend(workload::validate_template_is_selected(object, &selector));
    errors.extend(workload::validate_template(object, &workload::template_options(old)));
    errors.extend(workload::validate_runs_always(object, "ReplicationController"));
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    #[test]
    fn an_update_warns_about_the_stored_template() {
        let controller = |seconds: i64| json!({"spec": {"template": {"spec": {"terminationGracePeriodSeconds": seconds, "containers": [{"name": "c"}]}}}});
        let count = |new: i64, old: Option<i64>| {
            let old = old.map(controller);
            ReplicationController.template_warnings(&controller(new), old.as_ref()).len()
        };
        assert_eq!(count(-1, None), 1);
        assert_eq!(count(-1, Some(1)), 0);
        assert_eq!(count(1, Some(-1)), 1);
    }
}
