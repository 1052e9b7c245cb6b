//! The table columns of replica sets.

use crate::printing::{
    age, container_cells, container_columns, integer, integers, label_selector, name, selector_column,
};
use jiff::Timestamp;
use pintle_machinery::{Value, ValueExt};
use pintle_registry::{Cell, Column};

pub(super) fn columns() -> Vec<Column> {
    let [containers, images] = container_columns();
    vec![
        Column::name(),
        integers("Desired", "How many replicas are wanted."),
        integers("Current", "How many replicas there are."),
        integers("Ready", "How many replicas are ready."),
        Column::age(),
        containers,
        images,
        selector_column(),
    ]
}

pub(super) fn cells(object: &Value, now: Timestamp) -> Vec<Cell> {
    let [containers, images] = container_cells(object, "spec.template.spec.containers");
    vec![
        name(object),
        integer(object, "spec.replicas"),
        integer(object, "status.replicas"),
        integer(object, "status.readyReplicas"),
        age(object, now),
        containers,
        images,
        label_selector(object.at("spec.selector")).into(),
    ]
}
