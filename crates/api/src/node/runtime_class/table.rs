//! The table columns of runtime classes.

use crate::printing::{age, column, name, text};
use jiff::Timestamp;
use pintle_machinery::Value;
use pintle_registry::{Cell, Column};

/// The columns.
pub(super) fn columns() -> Vec<Column> {
    vec![Column::name(), column("Handler", "What the node's container runtime calls it."), Column::age()]
}

/// The cells of one object.
pub(super) fn cells(class: &Value, now: Timestamp) -> Vec<Cell> {
    vec![name(class), text(class, "handler"), age(class, now)]
}
