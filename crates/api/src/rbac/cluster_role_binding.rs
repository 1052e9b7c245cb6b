//! Cluster role bindings: the users with a role in the whole cluster.

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
        .cluster("ClusterRoleBinding", "clusterrolebindings")
        .prints(binding_table::columns, binding_table::cells)
        .ruled(Guarded { rules: RULES, guard: Guard::ClusterRoleBinding, rbac: rbac.clone() })
}

/// The kinds of roles that may be bound.
const ROLE_KINDS: &[&str] = &["ClusterRole"];

const RULES: PlainStrategy =
    PlainStrategy::NEW.defaults(binding_rules::set_defaults).creates_on_update().takes_any_name().checked(
        |binding| binding_rules::validate(binding, false, ROLE_KINDS),
        |binding, old| binding_rules::validate_update(binding, old, false, ROLE_KINDS),
    );
