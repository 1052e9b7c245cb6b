//! Policies that change objects by expressions.

use super::GROUP;
use super::parameters::param_kind;
use crate::declare::Declare;
use crate::printing::{age, column, count, integers, name};
use jiff::Timestamp;
use pintle_machinery::Value;
use pintle_registry::{Cell, Column, Resource};

/// The declaration.
pub fn resource() -> Resource {
    GROUP
        .cluster("MutatingAdmissionPolicy", "mutatingadmissionpolicies")
        .prints(columns, cells)
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
