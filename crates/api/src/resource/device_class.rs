//! Device classes.

mod validation;

use super::GROUP;
use crate::declare::Declare;
use crate::plain::{Generation, PlainStrategy};
use crate::printing::{age, name};
use jiff::Timestamp;
use pintle_machinery::Value;
use pintle_registry::{Cell, Column, Resource};

/// The declaration of the resource.
pub fn resource() -> Resource {
    GROUP.cluster("DeviceClass", "deviceclasses").prints(columns, cells).ruled(RULES)
}

fn columns() -> Vec<Column> {
    vec![Column::name(), Column::age()]
}

fn cells(class: &Value, now: Timestamp) -> Vec<Cell> {
    vec![name(class), age(class, now)]
}

const RULES: PlainStrategy = PlainStrategy::NEW
    .generation(Generation::Counted)
    .answers_deleted_object()
    .checked(validation::validate, validation::validate_update);
