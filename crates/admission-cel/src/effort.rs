//! The limits of attempts to evaluate an expression.

use crate::EXPRESSION_BUDGET;

/// The cost up to which an expression is evaluated on a worker. An expression that costs more is evaluated again on
/// another thread: the cost is known only then, and this one is a small part of it.
const LIGHT_COST: u64 = 5_000;
/// The number of items that may be visited for each unit of a budget: costs do not cover all work, such as the comparison
/// of large objects.
pub(crate) const WORK_PER_COST: u64 = 2;

/// The limit of one attempt to evaluate an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effort {
    /// At most [`LIGHT_COST`], which takes one or two milliseconds at most.
    Light,
    /// The limit of expressions.
    Full,
}

impl Effort {
    /// The maximum cost of an expression.
    pub(crate) fn cost(self) -> u64 {
        match self {
            Effort::Light => LIGHT_COST,
            Effort::Full => EXPRESSION_BUDGET,
        }
    }

    /// The maximum number of items that an expression visits when there is a rest of `work`.
    pub(crate) fn work(self, work: u64) -> u64 {
        match self {
            Effort::Light => work.min(LIGHT_COST * WORK_PER_COST),
            Effort::Full => work,
        }
    }
}
