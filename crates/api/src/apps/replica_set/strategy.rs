//! The strategy of replica sets.

use crate::{rules, workload};
use pintle_machinery::{ErrorList, Value, ValueExt};
use pintle_registry::{RequestContext, Strategy};
use serde_json::json;

pub(super) struct ReplicaSetStrategy;

impl Strategy for ReplicaSetStrategy {
    fn reset_fields(&self) -> &'static [&'static str] {
        &["status"]
    }

    fn set_defaults(&self, object: &mut Value) {
        workload::set_template_defaults(object);
        object.set_default("spec.replicas", 1);
    }

    fn prepare_for_create(&self, _context: &RequestContext<'_>, object: &mut Value) {
        object.set("status", json!({"replicas": 0}));
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
        errors.extend(workload::validate_selector_is_kept(object, old));
        errors
    }

    fn warnings_on_update(&self, _context: &RequestContext<'_>, object: &Value, old: &Value) -> Vec<String> {
        if rules::differs(object, old, "metadata.generation") {
            return workload::template_warnings(object, Some(old));
        }
        Vec::new()
    }
}

/// The strategy of the `status` subresource.
pub(super) struct StatusStrategy;

impl Strategy for StatusStrategy {
    fn reset_fields(&self) -> &'static [&'static str] {
        &["spec"]
    }

    fn set_defaults(&self, object: &mut Value) {
        ReplicaSetStrategy.set_defaults(object);
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

/// Validates the status of replica sets and replication controllers.
pub(crate) fn validate_status(object: &Value) -> ErrorList {
    const OVER_REPLICAS: &str = "cannot be greater than status.replicas";
    let mut errors = workload::validate_status_counts(
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
    errors.extend(workload::validate_status_bounds(
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

fn validate_spec(object: &Value, old: Option<&Value>) -> ErrorList {
    let mut errors = rules::nonnegative(object, "spec.replicas");
    errors.extend(rules::nonnegative(object, "spec.minReadySeconds"));
    let options = workload::template_options(old);
    errors.extend(workload::validate_selector_and_template(object, &options));
    errors
}
