//! The table columns of role bindings and of cluster role bindings.

use crate::printing::{age, column, name, wide};
use jiff::Timestamp;
use pintle_machinery::{Value, ValueExt};
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

/// The role as `kind/name`.
fn role(binding: &Value) -> Cell {
    format!("{}/{}", binding.str_at("roleRef.kind"), binding.str_at("roleRef.name")).into()
}

/// The users, groups and service accounts of a binding, each joined. Subjects of other kinds are left out.
fn subjects(binding: &Value) -> [Cell; 3] {
    ["User", "Group", "ServiceAccount"].map(|kind| {
        let subjects = binding.items_at("subjects").iter().filter(|subject| subject.str_at("kind") == kind);
        let names: Vec<String> = subjects
            .map(|subject| match kind {
                "ServiceAccount" => format!("{}/{}", subject.str_at("namespace"), subject.str_at("name")),
                _ => subject.str_at("name").to_owned(),
            })
            .collect();
        names.join(", ").into()
    })
}
