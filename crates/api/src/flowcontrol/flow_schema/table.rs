//! The table columns of flow schemas.

use crate::printing::{NONE, age, column, integer, name, text, text_or};
use jiff::Timestamp;
use pintle_machinery::{Value, ValueExt};
use pintle_registry::{Cell, Column};

/// The columns.
pub(super) fn columns() -> Vec<Column> {
    vec![
        Column::name(),
        column("PriorityLevel", "The share of the server that its requests get."),
        column("MatchingPrecedence", "Which schema is asked first: the lowest number."),
        column("DistinguisherMethod", "What tells its flows apart."),
        Column::age(),
        column("MissingPL", "Whether its priority level does not exist."),
    ]
}

/// The rank of an object: schemas are listed in the order in which they are asked.
pub(super) fn precedence(schema: &Value) -> i64 {
    schema.i64_at("spec.matchingPrecedence").unwrap_or_default()
}

/// The cells of one object.
pub(super) fn cells(schema: &Value, now: Timestamp) -> Vec<Cell> {
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
