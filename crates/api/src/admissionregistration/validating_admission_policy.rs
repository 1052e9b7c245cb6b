//! Validating admission policies: expressions that validate objects.

use super::GROUP;
use super::defaults::set_policy_defaults;
use super::parameters::param_kind;
use crate::declare::Declare;
use crate::plain::{Generation, PlainStatusStrategy, PlainStrategy};
use crate::printing::{age, column, count, integers, name};
use jiff::Timestamp;
use pintle_machinery::Value;
use pintle_registry::{Cell, Column, Resource};

/// The declaration of the resource.
pub fn resource() -> Resource {
    GROUP
        .cluster("ValidatingAdmissionPolicy", "validatingadmissionpolicies")
        .prints(columns, cells)
        .ruled(RULES)
        .categories(["api-extensions"])
        .status(PlainStatusStrategy { keeps_metadata: true })
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

const RULES: PlainStrategy = PlainStrategy::NEW
    .defaults(set_policy_defaults)
    .generation(Generation::Counted)
    .with_status()
    .needs_resource_version();
