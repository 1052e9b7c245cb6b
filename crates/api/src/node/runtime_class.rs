//! Runtime classes: the container runtimes of nodes.

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
        .cluster("RuntimeClass", "runtimeclasses")
        .prints(columns, cells)
        .ruled(strategy::RuntimeClassStrategy)
}

fn columns() -> Vec<Column> {
    vec![Column::name(), column("Handler", "What the node's container runtime calls it."), Column::age()]
}

fn cells(class: &Value, now: Timestamp) -> Vec<Cell> {
    vec![name(class), text(class, "handler"), age(class, now)]
}
