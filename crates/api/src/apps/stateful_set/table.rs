//! The table columns of stateful sets.

use crate::printing::{age, column, container_cells, container_columns, name};
use jiff::Timestamp;
use pintle_machinery::{Value, ValueExt};
use pintle_registry::{Cell, Column};

/// The columns.
pub(super) fn columns() -> Vec<Column> {
    let [containers, images] = container_columns();
    vec![
        Column::name(),
        column("Ready", "How many pods are ready, of how many."),
        Column::age(),
        containers,
        images,
    ]
}

/// The cells of one object.
pub(super) fn cells(set: &Value, now: Timestamp) -> Vec<Cell> {
    let [containers, images] = container_cells(set, "spec.template.spec.containers");
    let [ready, desired] =
        ["status.readyReplicas", "spec.replicas"].map(|path| set.i64_at(path).unwrap_or_default());
    vec![name(set), format!("{ready}/{desired}").into(), age(set, now), containers, images]
}
