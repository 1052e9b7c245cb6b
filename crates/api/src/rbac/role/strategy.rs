//! The rules of roles.

use crate::{
    rbac::{metadata, policy_rule::validate_rules},
    rules,
};
use pintle_machinery::{ErrorList, Value};
use pintle_registry::{RequestContext, Strategy};

pub(super) struct RoleStrategy;

impl Strategy for RoleStrategy {
    fn validate(&self, _context: &RequestContext<'_>, object: &Value) -> ErrorList {
        validate(object)
    }

    fn validate_update(&self, _context: &RequestContext<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = validate(object);
        errors.extend(rules::metadata_update(object, old));
        errors
    }

    fn allow_create_on_update(&self) -> bool {
        true
    }

    fn validate_name(&self, name: &str, prefix: bool) -> Vec<String> {
        metadata::validate_name(name, prefix)
    }
}

fn validate(role: &Value) -> ErrorList {
    let mut errors = metadata::validate(role, true);
    errors.extend(validate_rules(role, true));
    errors
}
