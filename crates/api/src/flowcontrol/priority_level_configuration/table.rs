//! The table columns of priority levels.

use crate::printing::{NONE, age, column, integer, name, text};
use jiff::Timestamp;
use pintle_machinery::{Value, ValueExt};
use pintle_registry::{Cell, Column};

/// The columns.
pub(super) fn columns() -> Vec<Column> {
    vec![
        Column::name(),
        column("Type", "Whether the level is limited."),
        column("NominalConcurrencyShares", "Its share of the server."),
        column("Queues", "How many queues its requests wait in."),
        column("HandSize", "How many queues a flow may use."),
        column("QueueLengthLimit", "How many requests may wait in a queue."),
        Column::age(),
    ]
}

/// The cells of one object.
pub(super) fn cells(level: &Value, now: Timestamp) -> Vec<Cell> {
    let number = |path: &str, holder: &str| match level.at(holder) {
        Some(_) => integer(level, &format!("{holder}.{path}")),
        None => NONE.into(),
    };
    let queuing = "spec.limited.limitResponse.queuing";
    vec![
        name(level),
        text(level, "spec.type"),
        number("nominalConcurrencyShares", "spec.limited"),
        number("queues", queuing),
        number("handSize", queuing),
        number("queueLengthLimit", queuing),
        age(level, now),
    ]
}
