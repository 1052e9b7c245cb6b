//! Templates of claims to devices.

use super::GROUP;
use crate::declare::Declare;
use crate::plain::PlainStrategy;
use crate::printing::{age, name};
use jiff::Timestamp;
use pintle_machinery::Value;
use pintle_registry::{Cell, Column, Resource};

/// The declaration.
pub fn resource() -> Resource {
    GROUP
        .namespaced("ResourceClaimTemplate", "resourceclaimtemplates")
        .prints(columns, cells)
        .ruled(PlainStrategy::NEW.answers_deleted_object())
}

fn columns() -> Vec<Column> {
    vec![Column::name(), Column::age()]
}

fn cells(template: &Value, now: Timestamp) -> Vec<Cell> {
    vec![name(template), age(template, now)]
}
