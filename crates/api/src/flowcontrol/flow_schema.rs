//! Flow schemas: classify requests into flows and priority levels.

mod table;
mod validation;

use super::conditions::StatusStrategy;
use super::group::GROUP;
use crate::declare::Declare;
use crate::plain::{Generation, PlainStrategy};
use pintle_machinery::{Value, ValueExt};
use pintle_registry::Resource;

/// The declaration of the resource.
pub fn resource() -> Resource {
    GROUP
        .cluster("FlowSchema", "flowschemas")
        .prints_ranked(table::columns, table::cells, table::precedence)
        .ruled(RULES)
        .status(StatusStrategy)
}

const RULES: PlainStrategy = PlainStrategy::NEW
    .defaults(set_defaults)
    .generation(Generation::Counted)
    .with_status()
    .checked(validation::validate, |object, _old| validation::validate(object));

fn set_defaults(schema: &mut Value) {
    if schema.i64_at("spec.matchingPrecedence").unwrap_or_default() == 0 {
        schema.set("spec.matchingPrecedence", 1000);
    }
}
