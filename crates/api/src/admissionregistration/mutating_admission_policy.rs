//! Mutating admission policies: expressions that change objects.

use super::GROUP;
use super::defaults::set_policy_defaults;
use super::parameters::param_kind;
use crate::declare::Declare;
use crate::plain::{Generation, PlainStrategy};
use crate::printing::{age, column, count, integers, name};
use jiff::Timestamp;
use pintle_machinery::Value;
use pintle_registry::{Cell, Column, Resource};

/// The declaration of the resource.
pub fn resource() -> Resource {
    GROUP
        .cluster("MutatingAdmissionPolicy", "mutatingadmissionpolicies")
        .prints(columns, cells)
        .ruled(RULES)
        .categories(["api-extensions"])
        .stored_as("v1beta1")
}

fn columns() -> Vec<Column> {
    vec![
        Column::name(),
        integers("Mutations", "How many changes it makes."),
        column("ParamKind", "The kind of the objects that parametrize it."),
        Column::age(),
    ]
}

fn cells(policy: &Value, now: Timestamp) -> Vec<Cell> {
    vec![name(policy), count(policy, "spec.mutations"), param_kind(policy), age(policy, now)]
}

const RULES: PlainStrategy =
    PlainStrategy::NEW.defaults(set_policy_defaults).generation(Generation::Counted).needs_resource_version();
