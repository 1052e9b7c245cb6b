//! Work that costs do not see.
//!
//! Cost counts what the reference counts, and that is not all: comparing two lists costs by their length, however much
//! their items hold, and an expression can make lists whose items are lists, that share their items, to any depth. So
//! every item that is looked at is counted, too, and an evaluation that looks at too many ends as one that is too dear.
//!
//! The count is the thread's, since an evaluation stays on its thread and what it calls need not pass the count around.

use crate::EvaluationError;
use std::cell::Cell;

/// How many items an evaluation may look at: several for each unit of cost that a rule may have.
const LIMIT: u64 = 5_000_000;

thread_local! {
    /// What the evaluation on this thread may still look at; outside of evaluations nothing is counted.
    static REMAINING: Cell<Option<u64>> = const { Cell::new(None) };
}

/// An evaluation on this thread. Dropping it ends the count.
pub(crate) struct Counted(Option<u64>);

/// Begins to count.
pub(crate) fn begin() -> Counted {
    Counted(REMAINING.replace(Some(LIMIT)))
}

impl Drop for Counted {
    fn drop(&mut self) {
        REMAINING.set(self.0);
    }
}

/// Counts items that are looked at; an error if they are too many.
pub(crate) fn count(items: usize) -> Result<(), EvaluationError> {
    let Some(remaining) = REMAINING.get() else { return Ok(()) };
    match remaining.checked_sub(items as u64) {
        Some(left) => {
            REMAINING.set(Some(left));
            Ok(())
        }
        None => Err(EvaluationError::CostLimitExceeded),
    }
}
