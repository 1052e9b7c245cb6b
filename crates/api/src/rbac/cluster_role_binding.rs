//! Cluster role bindings: the users with a role in the whole cluster.

use super::binding_rules;
use super::subjects::{role, subjects};
use super::{GROUP, escalation::Guard, guarded::Guarded};
use crate::declare::Declare;
use crate::plain::PlainStrategy;
use crate::printing::{age, column, name, wide};
use jiff::Timestamp;
use pintle_machinery::Value;
use pintle_rbac::Rbac;
use pintle_registry::{Cell, Column, Resource};
use std::sync::Arc;

/// The declaration of the resource.
pub fn resource(rbac: &Arc<Rbac>) -> Resource {
    GROUP.cluster("ClusterRoleBinding", "clusterrolebindings").prints(columns, cells).ruled(Guarded {
        rules: RULES,
        guard: Guard::ClusterRoleBinding,
        rbac: rbac.clone(),
    })
}

fn columns() -> Vec<Column> {
    vec![
        Column::name(),
        column("Role", "The role that is given."),
        Column::age(),
        wide("Users", "The users who have it."),
        wide("Groups", "The groups that have it."),
        wide("ServiceAccounts", "The service accounts that have it."),
    ]
}

fn cells(binding: &Value, now: Timestamp) -> Vec<Cell> {
    let [users, groups, service_accounts] = subjects(binding);
    vec![name(binding), role(binding), age(binding, now), users, groups, service_accounts]
}

/// The kinds of roles that may be bound.
const ROLE_KINDS: &[&str] = &["ClusterRole"];

const RULES: PlainStrategy =
    PlainStrategy::NEW.defaults(binding_rules::set_defaults).creates_on_update().takes_any_name().checked(
        |binding| binding_rules::validate(binding, false, ROLE_KINDS),
        |binding, old| binding_rules::validate_update(binding, old, false, ROLE_KINDS),
    );
