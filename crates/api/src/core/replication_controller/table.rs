//! The table columns of replication controllers.

use crate::printing::{
    age, container_cells, container_columns, integer, integers, labels, name, selector_column,
};
use jiff::Timestamp;
use pintle_machinery::{Value, ValueExt};
use pintle_registry::{Cell, Column};

/// The columns.
pub(super) fn columns() -> Vec<Column> {
    let [containers, images] = container_columns();
    vec![
        Column::name(),
        integers("Desired", "How many pods there should be."),
        integers("Current", "How many pods there are."),
        integers("Ready", "How many pods are ready."),
        Column::age(),
        containers,
        images,
        selector_column(),
    ]
}

/// The cells of one object.
pub(super) fn cells(controller: &Value, now: Timestamp) -> Vec<Cell> {
    let [containers, images] = container_cells(controller, "spec.template.spec.containers");
    vec![
        name(controller),
        integer(controller, "spec.replicas"),
        integer(controller, "status.replicas"),
        integer(controller, "status.readyReplicas"),
        age(controller, now),
        containers,
        images,
        labels(controller.map_at("spec.selector")).into(),
    ]
}
