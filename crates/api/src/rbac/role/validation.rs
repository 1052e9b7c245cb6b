//! Validates roles.

use crate::{
    rbac::{metadata, policy_rule::validate_rules},
    rules,
};
use pintle_machinery::{ErrorList, Value};

/// Validates a new role.
pub(super) fn validate(role: &Value) -> ErrorList {
    let mut errors = metadata::validate(role, true);
    errors.extend(validate_rules(role, true));
    errors
}

/// Validates an update of a role.
pub(super) fn validate_update(role: &Value, old: &Value) -> ErrorList {
    let mut errors = validate(role);
    errors.extend(rules::metadata_update(role, old));
    errors
}
