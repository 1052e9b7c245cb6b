//! Bounds work that costs do not cover.
//!
//! Cost counts the same as the reference, which does not cover all work: comparing two lists costs by their length,
//! independent of the size of their items, and an expression can build lists of shared lists to any depth. Every
//! visited item is therefore counted too, and an evaluation that visits too many ends like one that exceeds its budget.
//!
//! The counter is thread-local: an evaluation stays on its thread, and the functions that it calls need not pass the
//! counter.

use crate::EvaluationError;
use std::cell::Cell;

/// The maximum number of items that an evaluation visits: several for each unit of a rule's cost limit.
const LIMIT: u64 = 5_000_000;

thread_local! {
    /// The number of items that the evaluation on this thread may still visit; `None` outside evaluations.
    static REMAINING: Cell<Option<u64>> = const { Cell::new(None) };
}

/// An evaluation on this thread. Dropping it ends the counting.
pub(crate) struct Counted {
    around: Option<u64>,
    limit: u64,
}

/// Starts counting, within the rest of an enclosing [`WorkLimit`].
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

/// Limits the items that all evaluations of this thread visit together, until it is dropped: one evaluation is cheap,
/// but there may be very many.
#[derive(Debug)]
pub struct WorkLimit(Option<u64>);

impl WorkLimit {
    /// Sets the limit to this number of items.
    pub fn new(items: u64) -> WorkLimit {
        WorkLimit(REMAINING.replace(Some(items)))
    }

    /// The number of items that may still be visited.
    pub fn remaining(&self) -> u64 {
        REMAINING.get().unwrap_or_default()
    }

    /// Counts work outside evaluations. Returns whether any is left.
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

/// The rest of the limit of this thread, to be carried to another one with [`carry`].
pub(crate) fn rest() -> Option<u64> {
    REMAINING.get()
}

/// Sets the rest of the limit, as another thread had or left it.
pub(crate) fn carry(rest: Option<u64>) {
    REMAINING.set(rest);
}

/// Whether the limit is reached.
pub(crate) fn is_spent() -> bool {
    REMAINING.get() == Some(0)
}

/// Counts work that cannot fail; an excess ends the evaluation at its next step.
pub(crate) fn note(items: u64) {
    if let Some(remaining) = REMAINING.get() {
        REMAINING.set(Some(remaining.saturating_sub(items)));
    }
}

/// Counts the bytes of visited texts, which are cheap.
pub(crate) fn note_bytes(bytes: usize) {
    if bytes >= BYTES_AT_ONCE {
        note((bytes / BYTES_AT_ONCE) as u64);
    }
}

/// The number of bytes that cost as much as one item.
const BYTES_AT_ONCE: usize = 256;

/// Counts visited items; fails when the limit is exceeded.
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
