//! The table columns of volume attachments.

use crate::printing::{age, boolean, booleans, column, name, text};
use jiff::Timestamp;
use pintle_machinery::Value;
use pintle_registry::{Cell, Column};

/// The columns.
pub(super) fn columns() -> Vec<Column> {
    vec![
        Column::name(),
        Column { format: "name".to_owned(), ..column("Attacher", "The driver that attaches it.") },
        column("PV", "The volume."),
        column("Node", "The node."),
        booleans("Attached", "Whether it is attached."),
        Column::age(),
    ]
}

/// The cells of one object.
pub(super) fn cells(attachment: &Value, now: Timestamp) -> Vec<Cell> {
    vec![
        name(attachment),
        text(attachment, "spec.attacher"),
        text(attachment, "spec.source.persistentVolumeName"),
        text(attachment, "spec.nodeName"),
        boolean(attachment, "status.attached"),
        age(attachment, now),
    ]
}
