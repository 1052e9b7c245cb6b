//! The table columns of CSI nodes.

use crate::printing::{age, count, integers, name};
use jiff::Timestamp;
use pintle_machinery::Value;
use pintle_registry::{Cell, Column};

/// The columns.
pub(super) fn columns() -> Vec<Column> {
    vec![Column::name(), integers("Drivers", "How many drivers the node has."), Column::age()]
}

/// The cells of one object.
pub(super) fn cells(node: &Value, now: Timestamp) -> Vec<Cell> {
    vec![name(node), count(node, "spec.drivers"), age(node, now)]
}
