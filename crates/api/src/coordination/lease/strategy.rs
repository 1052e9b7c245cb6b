//! The strategy of leases.

use crate::{coordination::lease_candidate::validate_strategy, rules};
use pintle_feature_gates::{Gate, enabled};
use pintle_machinery::{ErrorList, FieldError, FieldPath, Value, ValueExt};
use pintle_registry::{RequestContext, Strategy};

/// The fields of coordinated leader election, which are behind its gate.
const GATED: [&str; 2] = ["spec.strategy", "spec.preferredHolder"];

pub(super) struct LeaseStrategy;

impl Strategy for LeaseStrategy {
    fn prepare_for_create(&self, _context: &RequestContext<'_>, object: &mut Value) {
        drop_disabled_fields(object, None);
    }

    fn validate(&self, _context: &RequestContext<'_>, object: &Value) -> ErrorList {
        let mut errors = rules::accessor_metadata(object, true);
        errors.extend(validate_spec(object));
        errors
    }

    fn prepare_for_update(&self, _context: &RequestContext<'_>, object: &mut Value, old: &Value) {
        drop_disabled_fields(object, Some(old));
    }

    fn validate_update(&self, _context: &RequestContext<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = rules::accessor_metadata_update(object, old);
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

fn drop_disabled_fields(lease: &mut Value, old: Option<&Value>) {
    for path in GATED {
        if !enabled(Gate::CoordinatedLeaderElection) && old.is_none_or(|old| old.at(path).is_none()) {
            lease.remove_at(path);
        }
    }
}

fn validate_spec(object: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let path = FieldPath::new("spec.leaseDurationSeconds");
    if let Some(seconds) = object.i64_at(path.as_str()).filter(|seconds| *seconds <= 0) {
        errors.push(FieldError::invalid(&path, seconds, "must be greater than 0"));
    }
    errors.extend(rules::nonnegative(object, "spec.leaseTransitions"));
    let path = FieldPath::new("spec");
    let strategy = object.at("spec.strategy").and_then(Value::as_str);
    if let Some(strategy) = strategy {
        errors.extend(validate_strategy(strategy, &path.child("strategy").child("strategy")));
    }
    if !object.str_at("spec.preferredHolder").is_empty() && strategy.unwrap_or_default().is_empty() {
        let detail = "may only be specified if `strategy` is defined";
        errors.push(FieldError::forbidden(&path.child("preferredHolder"), detail));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    #[test]
    fn a_preferred_holder_needs_a_strategy() {
        let check = |spec: Value, expected: &[&str]| {
            let errors = validate_spec(&json!({"spec": spec}));
            assert_eq!(errors.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
        };
        check(json!({"strategy": "OldestEmulationVersion", "preferredHolder": "a"}), &[]);
        check(
            json!({"preferredHolder": "a"}),
            &["spec.preferredHolder: Forbidden: may only be specified if `strategy` is defined"],
        );
        check(
            json!({"strategy": "Newest"}),
            &[
                r#"spec.strategy.strategy: Unsupported value: "Newest": supported values: "OldestEmulationVersion""#,
            ],
        );
    }

    #[test]
    fn fields_behind_the_closed_gate_stay_where_they_are_in_use() {
        let lease = json!({"spec": {"strategy": "a.b/c", "preferredHolder": "h"}});
        let mut dropped = lease.clone();
        drop_disabled_fields(&mut dropped, None);
        assert_eq!(dropped, json!({"spec": {}}));
        let mut kept = lease.clone();
        drop_disabled_fields(&mut kept, Some(&lease));
        assert_eq!(kept, lease);
    }
}
