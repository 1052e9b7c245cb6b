//! The table columns of leases.

use crate::printing::{age, column, name, text};
use jiff::Timestamp;
use pintle_machinery::Value;
use pintle_registry::{Cell, Column};

pub(super) fn columns() -> Vec<Column> {
    vec![Column::name(), column("Holder", "Who holds it."), Column::age()]
}

pub(super) fn cells(object: &Value, now: Timestamp) -> Vec<Cell> {
    vec![name(object), text(object, "spec.holderIdentity"), age(object, now)]
}
