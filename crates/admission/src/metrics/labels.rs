//! The labels of durations.

use crate::{Operation, Step};

/// The labels of the duration of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Labels {
    pub(crate) step: Step,
    pub(crate) operation: Operation,
    pub(crate) rejected: bool,
}

impl Labels {
    /// The names of the labels.
    pub(super) const NAMES: [&str; 3] = ["operation", "rejected", "type"];
    /// The number of combinations.
    pub(super) const COUNT: usize = 16;

    /// All combinations.
    pub(super) fn all() -> impl Iterator<Item = Labels> {
        let operations = [Operation::Create, Operation::Update, Operation::Delete, Operation::Connect];
        operations.into_iter().flat_map(|operation| {
            [Step::Admit, Step::Validate]
                .into_iter()
                .flat_map(move |step| [false, true].map(|rejected| Labels { step, operation, rejected }))
        })
    }

    /// The place among all combinations.
    pub(super) fn place(self) -> usize {
        self.operation as usize * 4 + self.step as usize * 2 + usize::from(self.rejected)
    }

    /// The values, in the order of the names.
    pub(super) fn values(self) -> [&'static str; 3] {
        let rejected = if self.rejected { "true" } else { "false" };
        let step = match self.step {
            Step::Admit => "admit",
            Step::Validate => "validate",
        };
        [self.operation.as_str(), rejected, step]
    }
}
