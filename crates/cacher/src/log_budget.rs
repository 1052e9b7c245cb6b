//! What the event logs of all resources may keep together.
//!
//! A server has as many logs as resources, and with custom resources their number is the clients' choice. When together
//! they hold more than the budget, a log to which an event comes gives up old ones, down to a part that each may keep.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// Bytes of replaced and deleted objects that logs keep. Clones are the same budget.
#[derive(Debug, Clone)]
pub struct LogBudget {
    used: Arc<AtomicUsize>,
    limit: usize,
}

impl LogBudget {
    /// What each log may keep in any case.
    pub const SHARE: usize = 256 << 10;

    /// A budget of so many bytes.
    pub fn new(limit: usize) -> LogBudget {
        LogBudget { used: Arc::default(), limit }
    }

    /// What all logs keep.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }
}

impl Default for LogBudget {
    fn default() -> LogBudget {
        LogBudget::new(128 << 20)
    }
}

/// What one log keeps.
#[derive(Debug)]
pub(crate) struct LogBytes {
    own: usize,
    budget: LogBudget,
}

impl LogBytes {
    pub(crate) fn new(budget: LogBudget) -> LogBytes {
        LogBytes { own: 0, budget }
    }

    pub(crate) fn get(&self) -> usize {
        self.own
    }

    pub(crate) fn add(&mut self, bytes: usize) {
        self.own += bytes;
        self.budget.used.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn remove(&mut self, bytes: usize) {
        self.own -= bytes;
        self.budget.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Whether all logs keep too much together, and this one more than each may.
    pub(crate) fn is_too_much(&self) -> bool {
        self.own > LogBudget::SHARE && self.budget.used() > self.budget.limit
    }
}

impl Drop for LogBytes {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.own, Ordering::Relaxed);
    }
}
