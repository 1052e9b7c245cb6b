//! Volume attachments: volumes attached to nodes.

mod strategy;

use super::GROUP;
use crate::declare::Declare;
use crate::printing::{age, boolean, booleans, column, name, text};
use jiff::Timestamp;
use pintle_machinery::Value;
use pintle_registry::{Cell, Column, Resource};

/// The declaration of the resource.
pub fn resource() -> Resource {
    GROUP
        .cluster("VolumeAttachment", "volumeattachments")
        .prints(columns, cells)
        .ruled(strategy::AttachmentStrategy)
        .status(strategy::StatusStrategy)
}

fn columns() -> Vec<Column> {
    vec![
        Column::name(),
        Column { format: "name".to_owned(), ..column("Attacher", "The driver that attaches it.") },
        column("PV", "The volume."),
        column("Node", "The node."),
        booleans("Attached", "Whether it is attached."),
        Column::age(),
    ]
}

fn cells(attachment: &Value, now: Timestamp) -> Vec<Cell> {
    vec![
        name(attachment),
        text(attachment, "spec.attacher"),
        text(attachment, "spec.source.persistentVolumeName"),
        text(attachment, "spec.nodeName"),
        boolean(attachment, "status.attached"),
        age(attachment, now),
    ]
}
