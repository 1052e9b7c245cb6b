//! Validates claims, except for their status.

use crate::{resource::claim_spec, rules};
use pintle_machinery::{ErrorList, FieldPath, Value};

/// Validates a new claim.
pub(super) fn validate(claim: &Value) -> ErrorList {
    let mut errors = rules::metadata(claim, true);
    errors.extend(claim_spec::validate(rules::value_at(claim, "spec"), &FieldPath::new("spec")));
    errors
}

/// Validates an update of a claim: its spec is immutable.
pub(super) fn validate_update(claim: &Value, old: &Value) -> ErrorList {
    let mut errors = rules::metadata(claim, true);
    errors.extend(rules::metadata_update(claim, old));
    let (new, old) = (rules::value_at(claim, "spec"), rules::value_at(old, "spec"));
    let path = FieldPath::new("spec");
    errors.extend(pintle_internal_form::validate_immutable(new, old, &path, "resource.ResourceClaimSpec"));
    errors
}
