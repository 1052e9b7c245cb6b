//! Templates of resource claims.

mod validation;

use super::GROUP;
use super::claim_spec;
use crate::declare::Declare;
use crate::plain::PlainStrategy;
use crate::printing::{age, name};
use jiff::Timestamp;
use pintle_machinery::{Value, ValueExt};
use pintle_registry::{Cell, Column, Resource};

/// The declaration of the resource.
pub fn resource() -> Resource {
    GROUP.namespaced("ResourceClaimTemplate", "resourceclaimtemplates").prints(columns, cells).ruled(RULES)
}

fn columns() -> Vec<Column> {
    vec![Column::name(), Column::age()]
}

fn cells(template: &Value, now: Timestamp) -> Vec<Cell> {
    vec![name(template), age(template, now)]
}

const RULES: PlainStrategy = PlainStrategy::NEW
    .defaults(|template| claim_spec::set_defaults(template.at_mut("spec.spec.devices")))
    .answers_deleted_object()
    .checked(validation::validate, validation::validate_update);
