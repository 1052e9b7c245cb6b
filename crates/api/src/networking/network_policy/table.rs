//! The table columns of network policies.

use crate::printing::{age, column, label_selector, name};
use jiff::Timestamp;
use pintle_machinery::{Value, ValueExt};
use pintle_registry::{Cell, Column};

/// The columns.
pub(super) fn columns() -> Vec<Column> {
    vec![Column::name(), column("Pod-Selector", "The labels of the pods it is for."), Column::age()]
}

/// The cells of one object.
pub(super) fn cells(policy: &Value, now: Timestamp) -> Vec<Cell> {
    vec![name(policy), label_selector(policy.at("spec.podSelector")).into(), age(policy, now)]
}
