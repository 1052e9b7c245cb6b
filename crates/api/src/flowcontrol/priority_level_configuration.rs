//! Priority levels: shares of the server's concurrency.

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
        .cluster("PriorityLevelConfiguration", "prioritylevelconfigurations")
        .prints(table::columns, table::cells)
        .ruled(RULES)
        .status(StatusStrategy)
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
