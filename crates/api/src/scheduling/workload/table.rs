//! The table columns of workloads.

use crate::printing::{age, name};
use jiff::Timestamp;
use pintle_machinery::Value;
use pintle_registry::{Cell, Column};

/// The columns.
pub(super) fn columns() -> Vec<Column> {
    vec![Column::name(), Column::age()]
}

/// The cells of one object.
pub(super) fn cells(workload: &Value, now: Timestamp) -> Vec<Cell> {
    vec![name(workload), age(workload, now)]
}
