//! The table columns of persistent volumes.

use crate::core::volume::{access_modes, phase, storage_class, storage_of};
use crate::printing::{UNSET, age, column, name, text, text_or, wide};
use jiff::Timestamp;
use pintle_machinery::{Value, ValueExt};
use pintle_registry::{Cell, Column};

/// The columns.
pub(super) fn columns() -> Vec<Column> {
    vec![
        Column::name(),
        column("Capacity", "How much the volume holds."),
        column("Access Modes", "From how many nodes the volume can be used, and how."),
        column("Reclaim Policy", "What becomes of the volume when its claim is gone."),
        column("Status", "Whether a claim has the volume."),
        column("Claim", "The claim that has it."),
        column("StorageClass", "The kind of storage it is."),
        column("VolumeAttributesClass", "The performance it has."),
        column("Reason", "Why it is in this state."),
        Column::age(),
        wide("VolumeMode", "Whether pods see a filesystem or a block device."),
    ]
}

/// The cells of one object.
pub(super) fn cells(volume: &Value, now: Timestamp) -> Vec<Cell> {
    let claim = match volume.at("spec.claimRef") {
        Some(claim) => format!("{}/{}", claim.str_at("namespace"), claim.str_at("name")),
        None => String::new(),
    };
    vec![
        name(volume),
        storage_of(volume, "spec.capacity").into(),
        access_modes(volume, "spec.accessModes").into(),
        text(volume, "spec.persistentVolumeReclaimPolicy"),
        phase(volume),
        claim.into(),
        storage_class(volume),
        text_or(volume, "spec.volumeAttributesClassName", UNSET),
        text(volume, "status.reason"),
        age(volume, now),
        text_or(volume, "spec.volumeMode", UNSET),
    ]
}
