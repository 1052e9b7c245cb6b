//! The table columns of device taint rules.

use crate::printing::{age, column, name, since, text};
use jiff::Timestamp;
use pintle_machinery::{Value, ValueExt};
use pintle_registry::{Cell, Column};

/// The columns.
pub(super) fn columns() -> Vec<Column> {
    vec![
        Column::name(),
        column("Key", "The key of the taint."),
        column("Value", "The value of the taint."),
        column("Effect", "What the taint does to claims that do not tolerate it."),
        column("TimeAdded", "The time since the taint has its effect."),
        Column::age(),
    ]
}

/// The cells of one object.
pub(super) fn cells(rule: &Value, now: Timestamp) -> Vec<Cell> {
    const TIME: &str = "spec.taint.timeAdded";
    let added = rule.at(TIME).map(|_| since(rule, TIME, now)).unwrap_or_default();
    vec![
        name(rule),
        text(rule, "spec.taint.key"),
        text(rule, "spec.taint.value"),
        text(rule, "spec.taint.effect"),
        added.into(),
        age(rule, now),
    ]
}
