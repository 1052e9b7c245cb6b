//! Resource claims: requests for devices.

mod status;
mod validation;

use super::GROUP;
use super::claim_spec;
use crate::declare::Declare;
use crate::plain::PlainStrategy;
use crate::printing::{age, column, name};
use jiff::Timestamp;
use pintle_machinery::{Value, ValueExt};
use pintle_registry::{Cell, Column, Resource};

/// The declaration of the resource.
pub fn resource() -> Resource {
    GROUP
        .namespaced("ResourceClaim", "resourceclaims")
        .prints(columns, cells)
        .ruled(RULES)
        .status(status::StatusStrategy)
}

fn columns() -> Vec<Column> {
    vec![Column::name(), column("State", "Whether devices are allocated, and in use."), Column::age()]
}

fn cells(claim: &Value, now: Timestamp) -> Vec<Cell> {
    vec![name(claim), state(claim).into(), age(claim, now)]
}

fn state(claim: &Value) -> String {
    let deleted = claim.at("metadata.deletionTimestamp").is_some();
    let allocated = claim.at("status.allocation").is_some();
    let reserved = allocated && !claim.items_at("status.reservedFor").is_empty();
    let words = [
        (deleted, "deleted"),
        (!deleted && !allocated, "pending"),
        (allocated, "allocated"),
        (reserved, "reserved"),
    ];
    let words: Vec<&str> = words.into_iter().filter(|(holds, _)| *holds).map(|(_, word)| word).collect();
    words.join(",")
}

const RULES: PlainStrategy = PlainStrategy::NEW
    .defaults(|claim| claim_spec::set_defaults(claim.at_mut("spec.devices")))
    .with_status()
    .answers_deleted_object()
    .checked(validation::validate, validation::validate_update);
