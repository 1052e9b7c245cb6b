//! The rules of role bindings.

use crate::rbac::{binding_rules, metadata};
use pintle_machinery::{ErrorList, Value};
use pintle_registry::{RequestContext, Strategy};

/// The kinds of roles that may be given.
const ROLE_KINDS: &[&str] = &["Role", "ClusterRole"];

pub(super) struct RoleBindingStrategy;

impl Strategy for RoleBindingStrategy {
    fn set_defaults(&self, object: &mut Value) {
        binding_rules::set_defaults(object);
    }

    fn validate(&self, _context: &RequestContext<'_>, object: &Value) -> ErrorList {
        binding_rules::validate(object, true, ROLE_KINDS)
    }

    fn validate_update(&self, _context: &RequestContext<'_>, object: &Value, old: &Value) -> ErrorList {
        binding_rules::validate_update(object, old, true, ROLE_KINDS)
    }

    fn allow_create_on_update(&self) -> bool {
        true
    }

    fn validate_name(&self, name: &str, prefix: bool) -> Vec<String> {
        metadata::validate_name(name, prefix)
    }
}
