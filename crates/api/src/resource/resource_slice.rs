//! Resource slices: a part of the devices of a driver.

mod capacity;
mod device;
mod strategy;
mod validation;

use super::GROUP;
use crate::declare::Declare;
use crate::printing::{age, column, name, text};
use jiff::Timestamp;
use pintle_machinery::Value;
use pintle_registry::{Cell, Column, Resource, SelectableField};

/// The declaration of the resource.
pub fn resource() -> Resource {
    GROUP
        .cluster("ResourceSlice", "resourceslices")
        .prints(columns, cells)
        .ruled(strategy::ResourceSliceStrategy)
        .selectable([
            SelectableField::new("spec.nodeName").with_trigger(),
            SelectableField::new("spec.driver"),
        ])
        .refuses_fields(|name| {
            format!("field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: {name}")
        })
}

fn columns() -> Vec<Column> {
    vec![
        Column::name(),
        column("Node", "The node that has the devices."),
        column("Driver", "The driver of the devices."),
        column("Pool", "The pool they belong to."),
        Column::age(),
    ]
}

fn cells(slice: &Value, now: Timestamp) -> Vec<Cell> {
    vec![
        name(slice),
        text(slice, "spec.nodeName"),
        text(slice, "spec.driver"),
        text(slice, "spec.pool.name"),
        age(slice, now),
    ]
}
