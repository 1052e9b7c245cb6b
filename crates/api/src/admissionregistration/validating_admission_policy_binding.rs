//! Bindings of validating admission policies.

use super::GROUP;
use super::defaults::set_binding_defaults;
use super::parameters::param_ref;
use crate::declare::Declare;
use crate::plain::{Generation, PlainStrategy};
use crate::printing::{age, column, name, text};
use jiff::Timestamp;
use pintle_machinery::Value;
use pintle_registry::{Cell, Column, Resource};

/// The declaration of the resource.
pub fn resource() -> Resource {
    GROUP
        .cluster("ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings")
        .prints(columns, cells)
        .ruled(RULES)
        .categories(["api-extensions"])
}

fn columns() -> Vec<Column> {
    vec![
        Column::name(),
        column("PolicyName", "The policy that is bound."),
        column("ParamRef", "The objects that parametrize it here."),
        Column::age(),
    ]
}

fn cells(binding: &Value, now: Timestamp) -> Vec<Cell> {
    vec![name(binding), text(binding, "spec.policyName"), param_ref(binding), age(binding, now)]
}

const RULES: PlainStrategy = PlainStrategy::NEW
    .defaults(set_binding_defaults)
    .generation(Generation::Counted)
    .needs_resource_version();
