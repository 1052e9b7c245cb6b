//! Role bindings: the users with a role in a namespace.

use super::{binding_rules, binding_table};
use super::{escalation::Guard, group::GROUP, guarded::Guarded};
use crate::declare::Declare;
use crate::plain::PlainStrategy;
use pintle_rbac::Rbac;
use pintle_registry::Resource;
use std::sync::Arc;

/// The declaration of the resource.
pub fn resource(rbac: &Arc<Rbac>) -> Resource {
    GROUP
        .namespaced("RoleBinding", "rolebindings")
        .prints(binding_table::columns, binding_table::cells)
        .ruled(Guarded { rules: RULES, guard: Guard::RoleBinding, rbac: rbac.clone() })
}

/// The kinds of roles that may be bound.
const ROLE_KINDS: &[&str] = &["Role", "ClusterRole"];

const RULES: PlainStrategy =
    PlainStrategy::NEW.defaults(binding_rules::set_defaults).creates_on_update().takes_any_name().checked(
        |binding| binding_rules::validate(binding, true, ROLE_KINDS),
        |binding, old| binding_rules::validate_update(binding, old, true, ROLE_KINDS),
    );
