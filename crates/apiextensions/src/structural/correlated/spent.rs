//! Measures the time that comparisons of new and old values take in an update.
//!
//! Validation is one call on one thread, and comparisons are deep in it, so the time is kept for the thread.

use std::{
    cell::Cell,
    time::{Duration, Instant},
};

thread_local! {
    static SPENT: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    static IS_TIMED: Cell<bool> = const { Cell::new(false) };
}

/// Makes a comparison, which may make others.
pub(super) fn timed(compare: impl FnOnce() -> bool) -> bool {
    if IS_TIMED.replace(true) {
        return compare();
    }
    let started = Instant::now();
    let unchanged = compare();
    IS_TIMED.set(false);
    SPENT.set(SPENT.get() + started.elapsed());
    unchanged
}

/// The result of a validation, and the time that its comparisons took.
pub(crate) fn time_spent<T>(validate: impl FnOnce() -> T) -> (T, Duration) {
    // A validation that panicked may have left these.
    IS_TIMED.set(false);
    SPENT.set(Duration::ZERO);
    let result = validate();
    (result, SPENT.take())
}
