//! The table columns of pod templates.

use crate::printing::{column, container_cells, labels, name};
use jiff::Timestamp;
use pintle_machinery::{Value, ValueExt};
use pintle_registry::{Cell, Column};

/// The columns.
pub(super) fn columns() -> Vec<Column> {
    vec![
        Column::name(),
        column("Containers", "The names of the containers."),
        column("Images", "The images of the containers."),
        column("Pod Labels", "The labels that its pods get."),
    ]
}

/// The cells of one object.
pub(super) fn cells(template: &Value, _now: Timestamp) -> Vec<Cell> {
    let [containers, images] = container_cells(template, "template.spec.containers");
    vec![name(template), containers, images, labels(template.map_at("template.metadata.labels")).into()]
}
