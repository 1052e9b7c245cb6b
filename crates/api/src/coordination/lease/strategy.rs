//! The strategy of leases.

use crate::rules;
use pintle_machinery::{ErrorList, FieldError, FieldPath, Value, ValueExt};
use pintle_registry::{RequestContext, Strategy};

/// Fields of coordinated leader election, a disabled feature.
const GATED: [&str; 2] = ["spec.strategy", "spec.preferredHolder"];

pub(super) struct LeaseStrategy;

impl Strategy for LeaseStrategy {
    fn prepare_for_create(&self, _context: &RequestContext<'_>, object: &mut Value) {
        for path in GATED {
            object.remove_at(path);
        }
    }

    fn validate(&self, _context: &RequestContext<'_>, object: &Value) -> ErrorList {
        let mut errors = rules::metadata(object, true);
        errors.extend(validate_spec(object));
        errors
    }

    fn prepare_for_update(&self, _context: &RequestContext<'_>, object: &mut Value, old: &Value) {
        for path in GATED {
            if old.at(path).is_none() {
                object.remove_at(path);
            }
        }
    }

    fn validate_update(&self, _context: &RequestContext<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = rules::metadata_update(object, old);
        errors.extend(validate_spec(object));
        errors
    }

    fn allow_create_on_update(&self) -> bool {
        true
    }

    fn allow_unconditional_update(&self) -> bool {
        false
    }
}

fn validate_spec(object: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let path = FieldPath::new("spec.leaseDurationSeconds");
    if let Some(seconds) = object.i64_at(path.as_str()).filter(|seconds| *seconds <= 0) {
        errors.push(FieldError::invalid(&path, seconds, "must be greater than 0"));
    }
    errors.extend(rules::nonnegative(object, "spec.leaseTransitions"));
    errors
}
