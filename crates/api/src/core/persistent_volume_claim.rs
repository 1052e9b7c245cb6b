//! Persistent volume claims.

mod strategy;

use super::GROUP;
use super::volume::{access_modes, phase, storage_class, storage_of};
use crate::declare::Declare;
use crate::printing::{UNSET, age, column, name, text, text_or, wide};
use jiff::Timestamp;
use pintle_machinery::{Value, ValueExt};
use pintle_registry::{Cell, Column, Resource};

/// The declaration of the resource.
pub fn resource() -> Resource {
    GROUP
        .namespaced("PersistentVolumeClaim", "persistentvolumeclaims")
        .prints(columns, cells)
        .short_names(["pvc"])
        .ruled(strategy::ClaimStrategy)
        .status(strategy::StatusStrategy)
}

fn columns() -> Vec<Column> {
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

fn cells(claim: &Value, now: Timestamp) -> Vec<Cell> {
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
