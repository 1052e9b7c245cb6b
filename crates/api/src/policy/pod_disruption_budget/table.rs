//! The table columns of pod disruption budgets.

use crate::printing::{age, column, integer, integers, name, plain};
use jiff::Timestamp;
use pintle_machinery::{Value, ValueExt};
use pintle_registry::{Cell, Column};

/// The columns.
pub(super) fn columns() -> Vec<Column> {
    vec![
        Column::name(),
        column("Min Available", "How many pods must stay."),
        column("Max Unavailable", "How many pods may be missing."),
        integers("Allowed Disruptions", "How many pods may go now."),
        Column::age(),
    ]
}

/// The cells of one object.
pub(super) fn cells(budget: &Value, now: Timestamp) -> Vec<Cell> {
    let bound = |path: &str| budget.at(path).map_or_else(|| "N/A".to_owned(), plain).into();
    vec![
        name(budget),
        bound("spec.minAvailable"),
        bound("spec.maxUnavailable"),
        integer(budget, "status.disruptionsAllowed"),
        age(budget, now),
    ]
}
