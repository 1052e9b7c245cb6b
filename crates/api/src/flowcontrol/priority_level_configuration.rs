//! Priority levels: shares of the server's concurrency.

mod validation;

use super::GROUP;
use super::conditions::StatusStrategy;
use crate::declare::Declare;
use crate::plain::{Generation, PlainStrategy};
use crate::printing::{NONE, age, column, integer, name, text};
use jiff::Timestamp;
use pintle_machinery::{Value, ValueExt};
use pintle_registry::{Cell, Column, Resource};

/// The declaration of the resource.
pub fn resource() -> Resource {
    GROUP
        .cluster("PriorityLevelConfiguration", "prioritylevelconfigurations")
        .prints(columns, cells)
        .ruled(RULES)
        .status(StatusStrategy)
}

fn columns() -> Vec<Column> {
    vec![
        Column::name(),
        column("Type", "Whether the level is limited."),
        column("NominalConcurrencyShares", "Its share of the server."),
        column("Queues", "How many queues its requests wait in."),
        column("HandSize", "How many queues a flow may use."),
        column("QueueLengthLimit", "How many requests may wait in a queue."),
        Column::age(),
    ]
}

fn cells(level: &Value, now: Timestamp) -> Vec<Cell> {
    let number = |path: &str, holder: &str| match level.at(holder) {
        Some(_) => integer(level, &format!("{holder}.{path}")),
        None => NONE.into(),
    };
    let queuing = "spec.limited.limitResponse.queuing";
    vec![
        name(level),
        text(level, "spec.type"),
        number("nominalConcurrencyShares", "spec.limited"),
        number("queues", queuing),
        number("handSize", queuing),
        number("queueLengthLimit", queuing),
        age(level, now),
    ]
}

const RULES: PlainStrategy = PlainStrategy::NEW
    .defaults(set_defaults)
    .generation(Generation::Counted)
    .with_status()
    .checked(validation::validate, |object, _old| validation::validate(object));

fn set_defaults(level: &mut Value) {
    for (kind, shares) in [("exempt", 0), ("limited", 30)] {
        if let Some(kind) = level.at_mut(&format!("spec.{kind}")) {
            kind.set_default("nominalConcurrencyShares", shares);
            kind.set_default("lendablePercent", 0);
        }
    }
    if let Some(queuing) = level.at_mut("spec.limited.limitResponse.queuing") {
        for (member, number) in [("handSize", 8), ("queues", 64), ("queueLengthLimit", 50)] {
            if queuing.i64_at(member).unwrap_or_default() == 0 {
                queuing.set(member, number);
            }
        }
    }
}
