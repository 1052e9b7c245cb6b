//! The table columns of service accounts.

use crate::printing::{age, name};
use jiff::Timestamp;
use pintle_machinery::Value;
use pintle_registry::{Cell, Column};

pub(super) fn columns() -> Vec<Column> {
    vec![Column::name(), Column::age()]
}

pub(super) fn cells(object: &Value, now: Timestamp) -> Vec<Cell> {
    vec![name(object), age(object, now)]
}
