//! Templates of pods.

use super::GROUP;
use crate::declare::Declare;
use crate::printing::{column, container_cells, labels, name};
use jiff::Timestamp;
use pintle_machinery::{Value, ValueExt};
use pintle_registry::{Cell, Column, Resource};

/// The declaration.
pub fn resource() -> Resource {
    GROUP.namespaced("PodTemplate", "podtemplates").prints(columns, cells).answers_deleted_object()
}

fn columns() -> Vec<Column> {
    vec![
        Column::name(),
        column("Containers", "The names of the containers."),
        column("Images", "The images of the containers."),
        column("Pod Labels", "The labels that its pods get."),
    ]
}

fn cells(template: &Value, _now: Timestamp) -> Vec<Cell> {
    let [containers, images] = container_cells(template, "template.spec.containers");
    vec![name(template), containers, images, labels(template.map_at("template.metadata.labels")).into()]
}
