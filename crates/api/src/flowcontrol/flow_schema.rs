//! Flow schemas: classify requests into flows and priority levels.

mod validation;

use super::GROUP;
use super::conditions::StatusStrategy;
use crate::declare::Declare;
use crate::plain::{Generation, PlainStrategy};
use crate::printing::{NONE, age, column, integer, name, text, text_or};
use jiff::Timestamp;
use pintle_machinery::{Value, ValueExt};
use pintle_registry::{Cell, Column, Resource};

/// The declaration of the resource.
pub fn resource() -> Resource {
    GROUP.cluster("FlowSchema", "flowschemas").prints(columns, cells).ruled(RULES).status(StatusStrategy)
}

fn columns() -> Vec<Column> {
    vec![
        Column::name(),
        column("PriorityLevel", "The share of the server that its requests get."),
        column("MatchingPrecedence", "Which schema is asked first: the lowest number."),
        column("DistinguisherMethod", "What tells its flows apart."),
        Column::age(),
        column("MissingPL", "Whether its priority level does not exist."),
    ]
}

fn cells(schema: &Value, now: Timestamp) -> Vec<Cell> {
    let mut conditions = schema.items_at("status.conditions").iter();
    let dangling = conditions.find(|condition| condition.str_at("type") == "Dangling");
    vec![
        name(schema),
        text(schema, "spec.priorityLevelConfiguration.name"),
        integer(schema, "spec.matchingPrecedence"),
        text_or(schema, "spec.distinguisherMethod.type", NONE),
        age(schema, now),
        dangling.map_or("?", |condition| condition.str_at("status")).into(),
    ]
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
