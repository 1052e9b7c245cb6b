//! Policies that judge objects by expressions.

use super::GROUP;
use super::parameters::param_kind;
use crate::declare::Declare;
use crate::printing::{age, column, count, integers, name};
use jiff::Timestamp;
use pintle_machinery::Value;
use pintle_registry::{Cell, Column, DefaultStrategy, Resource};

/// The declaration.
pub fn resource() -> Resource {
    GROUP
        .cluster("ValidatingAdmissionPolicy", "validatingadmissionpolicies")
        .prints(columns, cells)
        .categories(["api-extensions"])
        .status(DefaultStrategy)
}

fn columns() -> Vec<Column> {
    vec![
        Column::name(),
        integers("Validations", "How many expressions judge an object."),
        column("ParamKind", "The kind of the objects that parametrize it."),
        Column::age(),
    ]
}

fn cells(policy: &Value, now: Timestamp) -> Vec<Cell> {
    vec![name(policy), count(policy, "spec.validations"), param_kind(policy), age(policy, now)]
}
