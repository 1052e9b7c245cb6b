//! The table columns of config maps.

use crate::printing::{age, column, name};
use jiff::Timestamp;
use pintle_machinery::{Value, ValueExt};
use pintle_registry::{Cell, Column};

pub(super) fn columns() -> Vec<Column> {
    vec![Column::name(), column("Data", "How many keys it has."), Column::age()]
}

pub(super) fn cells(object: &Value, now: Timestamp) -> Vec<Cell> {
    let keys = object.map_at("data").len() + object.map_at("binaryData").len();
    vec![name(object), keys.into(), age(object, now)]
}
