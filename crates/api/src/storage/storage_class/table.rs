//! The table columns of storage classes.

use crate::printing::{age, boolean, column, is_annotated, name_or_default, text, text_or};
use jiff::Timestamp;
use pintle_machinery::Value;
use pintle_registry::{Cell, Column};

/// The columns.
pub(super) fn columns() -> Vec<Column> {
    vec![
        Column::name(),
        column("Provisioner", "Who makes the volumes."),
        column("ReclaimPolicy", "What becomes of a volume when its claim is gone."),
        column("VolumeBindingMode", "When a claim gets its volume."),
        column("AllowVolumeExpansion", "Whether claims may grow."),
        Column::age(),
    ]
}

/// The cells of one object.
pub(super) fn cells(class: &Value, now: Timestamp) -> Vec<Cell> {
    let is_default = DEFAULT_ANNOTATIONS.into_iter().any(|annotation| is_annotated(class, annotation));
    vec![
        name_or_default(class, is_default),
        text(class, "provisioner"),
        text_or(class, "reclaimPolicy", "Delete"),
        text_or(class, "volumeBindingMode", "Immediate"),
        boolean(class, "allowVolumeExpansion"),
        age(class, now),
    ]
}

const DEFAULT_ANNOTATIONS: [&str; 2] =
    ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];
