//! Volume attributes classes: performance classes between which volumes can switch.

mod strategy;

use super::GROUP;
use crate::declare::Declare;
use crate::printing::{age, column, name, text};
use jiff::Timestamp;
use pintle_machinery::Value;
use pintle_registry::{Cell, Column, Resource};

/// The declaration of the resource.
pub fn resource() -> Resource {
    GROUP
        .cluster("VolumeAttributesClass", "volumeattributesclasses")
        .prints(columns, cells)
        .ruled(strategy::VolumeAttributesClassStrategy)
        .short_names(["vac"])
}

fn columns() -> Vec<Column> {
    vec![Column::name(), column("DriverName", "The driver it is for."), Column::age()]
}

fn cells(class: &Value, now: Timestamp) -> Vec<Cell> {
    vec![name(class), text(class, "driverName"), age(class, now)]
}
