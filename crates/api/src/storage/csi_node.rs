//! CSI nodes: the drivers of a node.

mod strategy;

use super::GROUP;
use crate::declare::Declare;
use crate::printing::{age, count, integers, name};
use jiff::Timestamp;
use pintle_machinery::Value;
use pintle_registry::{Cell, Column, Resource};

/// The declaration of the resource.
pub fn resource() -> Resource {
    GROUP.cluster("CSINode", "csinodes").prints(columns, cells).ruled(strategy::CsiNodeStrategy)
}

fn columns() -> Vec<Column> {
    vec![Column::name(), integers("Drivers", "How many drivers the node has."), Column::age()]
}

fn cells(node: &Value, now: Timestamp) -> Vec<Cell> {
    vec![name(node), count(node, "spec.drivers"), age(node, now)]
}
