//! The rules of replica sets.

use crate::gated_fields::GatedFields;
use crate::rules;
use crate::workload::{self, Workload};
use pintle_machinery::{ErrorList, Value, ValueExt, json};

/// The rules of replica sets.
pub(super) struct ReplicaSet;

impl Workload for ReplicaSet {
    const GATED: &'static [GatedFields] = workload::GATED_REPLICAS;

    fn set_defaults(&self, object: &mut Value) {
        workload::set_template_defaults(object);
        object.set_default("spec.replicas", 1);
    }

    fn new_status(&self) -> Value {
        json!({"replicas": 0})
    }

    fn validate_spec(&self, object: &Value, old: Option<&Value>) -> ErrorList {
        let mut errors = validate_spec(object, old);
        if let Some(old) = old {
            errors.extend(workload::validate_selector_is_kept(object, old));
        }
        errors
    }

    fn validate_status(&self, object: &Value, _old: &Value) -> ErrorList {
        workload::validate_replicas_status(object)
    }
}

fn validate_spec(object: &Value, old: Option<&Value>) -> ErrorList {
    let mut errors = rules::nonnegative(object, "spec.replicas");
    errors.extend(rules::nonnegative(object, "spec.minReadySeconds"));
    let options = workload::template_options(old);
    errors.extend(workload::validate_selector_and_template(object, &options));
    errors
}
