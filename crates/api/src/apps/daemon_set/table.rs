//! The table columns of daemon sets.

use crate::printing::{
    age, column, container_cells, container_columns, integer, integers, label_selector, labels, name,
    selector_column,
};
use jiff::Timestamp;
use pintle_machinery::{Value, ValueExt};
use pintle_registry::{Cell, Column};

/// The columns.
pub(super) fn columns() -> Vec<Column> {
    let [containers, images] = container_columns();
    vec![
        Column::name(),
        integers("Desired", "On how many nodes there should be a pod."),
        integers("Current", "On how many of them there is one."),
        integers("Ready", "On how many of them it is ready."),
        integers("Up-to-date", "On how many of them it has the current template."),
        integers("Available", "On how many of them it has been ready long enough."),
        column("Node Selector", "The labels of the nodes that get a pod."),
        Column::age(),
        containers,
        images,
        selector_column(),
    ]
}

/// The cells of one object.
pub(super) fn cells(set: &Value, now: Timestamp) -> Vec<Cell> {
    let [containers, images] = container_cells(set, "spec.template.spec.containers");
    vec![
        name(set),
        integer(set, "status.desiredNumberScheduled"),
        integer(set, "status.currentNumberScheduled"),
        integer(set, "status.numberReady"),
        integer(set, "status.updatedNumberScheduled"),
        integer(set, "status.numberAvailable"),
        labels(set.map_at("spec.template.spec.nodeSelector")).into(),
        age(set, now),
        containers,
        images,
        label_selector(set.at("spec.selector")).into(),
    ]
}
