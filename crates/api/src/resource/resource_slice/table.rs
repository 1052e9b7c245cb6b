//! The table columns of resource slices.

use crate::printing::{age, column, name, text};
use jiff::Timestamp;
use pintle_machinery::Value;
use pintle_registry::{Cell, Column};

/// The columns.
pub(super) fn columns() -> Vec<Column> {
    vec![
        Column::name(),
        column("Node", "The node that has the devices."),
        column("Driver", "The driver of the devices."),
        column("Pool", "The pool they belong to."),
        Column::age(),
    ]
}

/// The cells of one object.
pub(super) fn cells(slice: &Value, now: Timestamp) -> Vec<Cell> {
    vec![
        name(slice),
        text(slice, "spec.nodeName"),
        text(slice, "spec.driver"),
        text(slice, "spec.pool.name"),
        age(slice, now),
    ]
}
