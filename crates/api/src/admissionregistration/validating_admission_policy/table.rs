//! The table columns of validating admission policies.

use crate::admissionregistration::parameters::param_kind;
use crate::printing::{age, column, count, integers, name};
use jiff::Timestamp;
use pintle_machinery::Value;
use pintle_registry::{Cell, Column};

/// The columns.
pub(super) fn columns() -> Vec<Column> {
    vec![
        Column::name(),
        integers("Validations", "How many expressions judge an object."),
        column("ParamKind", "The kind of the objects that parametrize it."),
        Column::age(),
    ]
}

/// The cells of one object.
pub(super) fn cells(policy: &Value, now: Timestamp) -> Vec<Cell> {
    vec![name(policy), count(policy, "spec.validations"), param_kind(policy), age(policy, now)]
}
