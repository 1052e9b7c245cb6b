//! The table columns of service CIDRs.

use crate::printing::{age, column, joined, name};
use jiff::Timestamp;
use pintle_machinery::{Value, ValueExt};
use pintle_registry::{Cell, Column};

/// The columns.
pub(super) fn columns() -> Vec<Column> {
    vec![Column::name(), column("CIDRs", "The ranges, one an address family."), Column::age()]
}

/// The cells of one object.
pub(super) fn cells(range: &Value, now: Timestamp) -> Vec<Cell> {
    vec![name(range), joined(range.items_at("spec.cidrs"), ",").into(), age(range, now)]
}
