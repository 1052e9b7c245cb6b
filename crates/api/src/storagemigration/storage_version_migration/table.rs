//! The table columns of storage version migrations.

use crate::printing::{column, name};
use jiff::Timestamp;
use pintle_machinery::{GroupResource, Value, ValueExt};
use pintle_registry::{Cell, Column};

const CONDITIONS: [&str; 3] = ["Running", "Failed", "Succeeded"];

/// The columns. That of the name has no format in the reference.
pub(super) fn columns() -> Vec<Column> {
    vec![
        Column { format: String::new(), ..Column::name() },
        column("Resource", "The resource whose objects are stored again."),
        column("Status", "How far the migration is."),
    ]
}

/// The cells of one object.
pub(super) fn cells(migration: &Value, _now: Timestamp) -> Vec<Cell> {
    let (group, resource) =
        (migration.str_at("spec.resource.group"), migration.str_at("spec.resource.resource"));
    let conditions = migration.items_at("status.conditions").iter().rev();
    let mut holding = conditions
        .filter(|condition| condition.str_at("status") == "True")
        .map(|condition| condition.str_at("type"));
    let status = holding.find(|condition| CONDITIONS.contains(condition)).unwrap_or("Unknown");
    vec![name(migration), GroupResource::new(group, resource).to_string().into(), status.into()]
}
