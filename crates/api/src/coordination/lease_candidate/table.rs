//! The table columns of lease candidates.

use crate::printing::{age, column, name, text};
use jiff::Timestamp;
use pintle_machinery::Value;
use pintle_registry::{Cell, Column};

/// The columns.
pub(super) fn columns() -> Vec<Column> {
    vec![
        Column::name(),
        column("LeaseName", "The lease it would take."),
        column("BinaryVersion", "The version of the candidate's program."),
        column("EmulationVersion", "The version that the program behaves as."),
        Column::age(),
    ]
}

/// The cells of one object.
pub(super) fn cells(candidate: &Value, now: Timestamp) -> Vec<Cell> {
    vec![
        name(candidate),
        text(candidate, "spec.leaseName"),
        text(candidate, "spec.binaryVersion"),
        text(candidate, "spec.emulationVersion"),
        age(candidate, now),
    ]
}
