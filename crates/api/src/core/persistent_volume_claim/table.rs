//! The table columns of persistent volume claims.

use crate::core::volume::{access_modes, phase, storage_class, storage_of};
use crate::printing::{UNSET, age, column, name, text, text_or, wide};
use jiff::Timestamp;
use pintle_machinery::{Value, ValueExt};
use pintle_registry::{Cell, Column};

/// The columns.
pub(super) fn columns() -> Vec<Column> {
    vec![
        Column::name(),
        column("Status", "Whether the claim is bound to a volume."),
        column("Volume", "The volume it is bound to."),
        column("Capacity", "How much the volume holds."),
        column("Access Modes", "From how many nodes the volume can be used, and how."),
        column("StorageClass", "The kind of storage that was asked for."),
        column("VolumeAttributesClass", "The performance that was asked for."),
        Column::age(),
        wide("VolumeMode", "Whether pods see a filesystem or a block device."),
    ]
}

/// The cells of one object.
pub(super) fn cells(claim: &Value, now: Timestamp) -> Vec<Cell> {
    let is_bound = !claim.str_at("spec.volumeName").is_empty();
    let (capacity, modes) = match is_bound {
        true => (storage_of(claim, "status.capacity"), access_modes(claim, "status.accessModes")),
        false => (String::new(), String::new()),
    };
    vec![
        name(claim),
        phase(claim),
        text(claim, "spec.volumeName"),
        capacity.into(),
        modes.into(),
        storage_class(claim),
        text_or(claim, "spec.volumeAttributesClassName", UNSET),
        age(claim, now),
        text_or(claim, "spec.volumeMode", UNSET),
    ]
}
