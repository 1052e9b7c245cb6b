//! The table columns of the bindings of mutating and of validating admission policies.

use crate::admissionregistration::parameters::param_ref;
use crate::printing::{age, column, name, text};
use jiff::Timestamp;
use pintle_machinery::Value;
use pintle_registry::{Cell, Column};

/// The columns.
pub(super) fn columns() -> Vec<Column> {
    vec![
        Column::name(),
        column("PolicyName", "The policy that is bound."),
        column("ParamRef", "The objects that parametrize it here."),
        Column::age(),
    ]
}

/// The cells of one object.
pub(super) fn cells(binding: &Value, now: Timestamp) -> Vec<Cell> {
    vec![name(binding), text(binding, "spec.policyName"), param_ref(binding), age(binding, now)]
}
