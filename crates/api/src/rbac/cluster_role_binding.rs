//! Who has a role in the whole cluster.

use super::GROUP;
use super::subjects::{role, set_defaults, subjects};
use crate::declare::Declare;
use crate::plain::PlainStrategy;
use crate::printing::{age, column, name, wide};
use jiff::Timestamp;
use pintle_machinery::Value;
use pintle_registry::{Cell, Column, Resource};

/// The declaration.
pub fn resource() -> Resource {
    GROUP.cluster("ClusterRoleBinding", "clusterrolebindings").prints(columns, cells).ruled(RULES)
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

const RULES: PlainStrategy = PlainStrategy::NEW.defaults(set_defaults).creates_on_update().takes_any_name();
