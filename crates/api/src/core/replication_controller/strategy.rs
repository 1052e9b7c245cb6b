//! The strategy of replication controllers. Their selector is a plain map, and mutable.

use crate::apps::replica_set::strategy::validate_status;
use crate::{rules, workload};
use pintle_machinery::{ErrorList, FieldError, FieldPath, Value, ValueExt, selectors::LabelSelector};
use pintle_registry::{RequestContext, Strategy};
use serde_json::json;

pub(super) struct ReplicationControllerStrategy;

impl Strategy for ReplicationControllerStrategy {
    fn reset_fields(&self) -> &'static [&'static str] {
        &["status"]
    }

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

    fn prepare_for_create(&self, _context: &RequestContext<'_>, object: &mut Value) {
        object.set("status", json!({}));
        object.set("metadata.generation", 1);
        workload::drop_disabled_template_fields(object, None);
    }

    fn validate(&self, _context: &RequestContext<'_>, object: &Value) -> ErrorList {
        let mut errors = rules::metadata(object, true);
        errors.extend(validate_spec(object, None));
        errors
    }

    fn warnings_on_create(&self, _context: &RequestContext<'_>, object: &Value) -> Vec<String> {
        let mut warnings = workload::name_warnings(object, workload::POD_NAME_RECOMMENDATION);
        warnings.extend(workload::template_warnings(object, None));
        warnings
    }

    fn prepare_for_update(&self, _context: &RequestContext<'_>, object: &mut Value, old: &Value) {
        rules::keep(object, old, "status");
        workload::drop_disabled_template_fields(object, Some(old));
        rules::count_generation(object, old);
    }

    fn validate_update(&self, _context: &RequestContext<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = rules::metadata_update(object, old);
        errors.extend(validate_spec(object, Some(old)));
        errors
    }

    fn warnings_on_update(&self, _context: &RequestContext<'_>, object: &Value, old: &Value) -> Vec<String> {
        if rules::differs(object, old, "metadata.generation") {
            return workload::template_warnings(object, Some(old));
        }
        Vec::new()
    }

    fn orphan_dependents_by_default(&self) -> bool {
        true
    }
}

/// The strategy of the `status` subresource.
pub(super) struct StatusStrategy;

impl Strategy for StatusStrategy {
    fn reset_fields(&self) -> &'static [&'static str] {
        &["spec"]
    }

    fn set_defaults(&self, object: &mut Value) {
        ReplicationControllerStrategy.set_defaults(object);
    }

    fn prepare_for_update(&self, _context: &RequestContext<'_>, object: &mut Value, old: &Value) {
        rules::keep(object, old, "spec");
    }

    fn validate_update(&self, _context: &RequestContext<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = rules::metadata_update(object, old);
        errors.extend(validate_status(object));
        errors
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
