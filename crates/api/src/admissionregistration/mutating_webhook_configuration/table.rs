//! The table columns of configurations of mutating webhooks.

use crate::printing::{age, count, integers, name};
use jiff::Timestamp;
use pintle_machinery::Value;
use pintle_registry::{Cell, Column};

/// The columns.
pub(super) fn columns() -> Vec<Column> {
    vec![Column::name(), integers("Webhooks", "How many webhooks it has."), Column::age()]
}

/// The cells of one object.
pub(super) fn cells(configuration: &Value, now: Timestamp) -> Vec<Cell> {
    vec![name(configuration), count(configuration, "webhooks"), age(configuration, now)]
}
