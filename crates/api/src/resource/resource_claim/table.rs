//! The table columns of resource claims.

use crate::printing::{age, column, name};
use jiff::Timestamp;
use pintle_machinery::{Value, ValueExt};
use pintle_registry::{Cell, Column};

/// The columns.
pub(super) fn columns() -> Vec<Column> {
    vec![Column::name(), column("State", "Whether devices are allocated, and in use."), Column::age()]
}

/// The cells of one object.
pub(super) fn cells(claim: &Value, now: Timestamp) -> Vec<Cell> {
    vec![name(claim), state(claim).into(), age(claim, now)]
}

fn state(claim: &Value) -> String {
    let deleted = claim.at("metadata.deletionTimestamp").is_some();
    let allocated = claim.at("status.allocation").is_some();
    let reserved = allocated && !claim.items_at("status.reservedFor").is_empty();
    let words = [
        (deleted, "deleted"),
        (!deleted && !allocated, "pending"),
        (allocated, "allocated"),
        (reserved, "reserved"),
    ];
    let words: Vec<&str> = words.into_iter().filter(|(holds, _)| *holds).map(|(_, word)| word).collect();
    words.join(",")
}
