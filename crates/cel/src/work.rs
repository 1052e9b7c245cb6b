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
pub(crate) struct Counted {
    around: Option<u64>,
    limit: u64,
}

/// Begins to count, within what is left to a [`WorkLimit`] around it.
pub(crate) fn begin() -> Counted {
    let around = REMAINING.get();
    let limit = around.map_or(LIMIT, |around| around.min(LIMIT));
    REMAINING.set(Some(limit));
    Counted { around, limit }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let left = REMAINING.get().unwrap_or(0);
        let used = self.limit.saturating_sub(left);
        REMAINING.set(self.around.map(|around| around.saturating_sub(used)));
    }
}

/// Limits the items that all evaluations of this thread look at together, until it is dropped: one evaluation is cheap,
/// but there may be very many.
#[derive(Debug)]
pub struct WorkLimit(Option<u64>);

impl WorkLimit {
    /// So many items.
    pub fn new(items: u64) -> WorkLimit {
        WorkLimit(REMAINING.replace(Some(items)))
    }

    /// Counts work beside evaluations. Returns whether any is left.
    pub fn spend(&self, items: u64) -> bool {
        note(items);
        !is_spent()
    }
}

impl Drop for WorkLimit {
    fn drop(&mut self) {
        REMAINING.set(self.0);
    }
}

/// Whether the limit is reached.
pub(crate) fn is_spent() -> bool {
    REMAINING.get() == Some(0)
}

/// Counts work that cannot fail; the evaluation ends at its next step if it was too much.
pub(crate) fn note(items: u64) {
    if let Some(remaining) = REMAINING.get() {
        REMAINING.set(Some(remaining.saturating_sub(items)));
    }
}

/// Counts bytes of texts that are gone through, which is fast.
pub(crate) fn note_bytes(bytes: usize) {
    if bytes >= BYTES_AT_ONCE {
        note((bytes / BYTES_AT_ONCE) as u64);
    }
}

/// As many bytes are gone through in the time of one item.
const BYTES_AT_ONCE: usize = 256;

/// Counts items that are looked at; an error if they are too many.
pub(crate) fn count(items: u64) -> Result<(), EvaluationError> {
    let Some(remaining) = REMAINING.get() else { return Ok(()) };
    match remaining.checked_sub(items) {
        Some(left) => {
            REMAINING.set(Some(left));
            Ok(())
        }
        None => {
            REMAINING.set(Some(0));
            Err(EvaluationError::CostLimitExceeded)
        }
    }
}
