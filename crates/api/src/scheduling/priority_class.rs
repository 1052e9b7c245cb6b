//! Priority classes.

mod strategy;

use super::GROUP;
use crate::declare::Declare;
use crate::printing::{age, boolean, booleans, column, integer, integers, name, text};
use jiff::Timestamp;
use pintle_machinery::Value;
use pintle_registry::{Cell, Column, Resource};

/// The declaration of the resource.
pub fn resource() -> Resource {
    GROUP
        .cluster("PriorityClass", "priorityclasses")
        .prints(columns, cells)
        .short_names(["pc"])
        .ruled(strategy::PriorityClassStrategy)
}

fn columns() -> Vec<Column> {
    vec![
        Column::name(),
        integers("Value", "The priority."),
        booleans("Global-Default", "Whether pods that name no class get this one."),
        Column::age(),
        column("PreemptionPolicy", "Whether its pods may push others out."),
    ]
}

fn cells(class: &Value, now: Timestamp) -> Vec<Cell> {
    vec![
        name(class),
        integer(class, "value"),
        boolean(class, "globalDefault"),
        age(class, now),
        text(class, "preemptionPolicy"),
    ]
}
