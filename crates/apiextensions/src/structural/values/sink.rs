//! Receives the problems that a walk finds.

use std::cell::Cell;

use super::problem::Problem;

/// The receiver of a walk's problems.
pub(super) trait Sink {
    /// A receiver for an alternative, whose problems may be dropped.
    fn fork(&self) -> Self;
    fn problem(&mut self, problem: impl FnOnce() -> Problem);
    fn failed(&self) -> bool;
    /// Adds another receiver's problems.
    fn merge(&mut self, other: Self);
    /// Whether further problems are irrelevant.
    fn is_done(&self) -> bool;
}

/// Records only whether there is a problem.
#[derive(Default)]
pub(super) struct Quick(bool);

impl Sink for Quick {
    fn fork(&self) -> Quick {
        Quick::default()
    }

    fn problem(&mut self, _: impl FnOnce() -> Problem) {
        self.0 = true;
    }

    fn failed(&self) -> bool {
        self.0
    }

    fn merge(&mut self, other: Self) {
        self.0 |= other.0;
    }

    fn is_done(&self) -> bool {
        self.0
    }
}

/// Collects all problems up to the maximum size.
pub(super) struct Thorough<'r> {
    pub(super) problems: Vec<Problem>,
    pub(super) failed: bool,
    /// The remaining size for all problems of the object, including those of alternatives.
    pub(super) room: &'r Cell<usize>,
}

impl Sink for Thorough<'_> {
    fn fork(&self) -> Self {
        Thorough { problems: Vec::new(), failed: false, room: self.room }
    }

    fn problem(&mut self, problem: impl FnOnce() -> Problem) {
        self.failed = true;
        if !self.is_done() {
            let problem = problem();
            self.room.set(self.room.get().saturating_sub(problem.size()));
            self.problems.push(problem);
        }
    }

    fn failed(&self) -> bool {
        self.failed
    }

    fn merge(&mut self, mut other: Self) {
        self.failed |= other.failed;
        self.problems.append(&mut other.problems);
    }

    fn is_done(&self) -> bool {
        self.room.get() == 0
    }
}
