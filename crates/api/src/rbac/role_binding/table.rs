//! The table columns of role bindings.

use crate::printing::{age, column, name, wide};
use crate::rbac::subjects::{role, subjects};
use jiff::Timestamp;
use pintle_machinery::Value;
use pintle_registry::{Cell, Column};

/// The columns.
pub(super) fn columns() -> Vec<Column> {
    vec![
        Column::name(),
        column("Role", "The role that is given."),
        Column::age(),
        wide("Users", "The users who have it."),
        wide("Groups", "The groups that have it."),
        wide("ServiceAccounts", "The service accounts that have it."),
    ]
}

/// The cells of one object.
pub(super) fn cells(binding: &Value, now: Timestamp) -> Vec<Cell> {
    let [users, groups, service_accounts] = subjects(binding);
    vec![name(binding), role(binding), age(binding, now), users, groups, service_accounts]
}
