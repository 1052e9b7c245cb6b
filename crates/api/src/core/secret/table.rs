//! The table columns of secrets.

use crate::printing::{age, column, name, text};
use jiff::Timestamp;
use pintle_machinery::{Value, ValueExt};
use pintle_registry::{Cell, Column};

pub(super) fn columns() -> Vec<Column> {
    vec![
        Column::name(),
        column("Type", "What kind of secret it is."),
        column("Data", "How many keys it has."),
        Column::age(),
    ]
}

pub(super) fn cells(object: &Value, now: Timestamp) -> Vec<Cell> {
    vec![name(object), text(object, "type"), object.map_at("data").len().into(), age(object, now)]
}
