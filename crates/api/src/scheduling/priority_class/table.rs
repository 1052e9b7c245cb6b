//! The table columns of priority classes.

use crate::printing::{age, boolean, booleans, column, integer, integers, name, text};
use jiff::Timestamp;
use pintle_machinery::Value;
use pintle_registry::{Cell, Column};

/// The columns.
pub(super) fn columns() -> Vec<Column> {
    vec![
        Column::name(),
        integers("Value", "The priority."),
        booleans("Global-Default", "Whether pods that name no class get this one."),
        Column::age(),
        column("PreemptionPolicy", "Whether its pods may push others out."),
    ]
}

/// The cells of one object.
pub(super) fn cells(class: &Value, now: Timestamp) -> Vec<Cell> {
    vec![
        name(class),
        integer(class, "value"),
        boolean(class, "globalDefault"),
        age(class, now),
        text(class, "preemptionPolicy"),
    ]
}
