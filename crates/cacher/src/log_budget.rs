//! Bounds the bytes that the event logs and the retained states of all resources keep in total.
//!
//! A server has as many logs as resources, and clients choose the number of custom resources. When all logs and
//! retained states together exceed the budget, a log that receives an event drops old events, and old states are
//! dropped, down to a share that each log and the states of each resource may keep.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// A budget for the bytes of replaced and deleted objects that event logs and retained states keep. Clones share the
/// budget.
#[derive(Debug, Clone)]
pub struct LogBudget {
    used: Arc<AtomicUsize>,
    limit: usize,
}

impl LogBudget {
    /// The bytes that each log, and the retained states of each resource, may keep even when the budget is exceeded.
    pub const SHARE: usize = 256 << 10;

    /// A budget of `limit` bytes.
    pub fn new(limit: usize) -> LogBudget {
        LogBudget { used: Arc::default(), limit }
    }

    /// The bytes that all logs and retained states keep now.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }
}

impl Default for LogBudget {
    fn default() -> LogBudget {
        LogBudget::new(128 << 20)
    }
}

/// The bytes that one log, or the retained states of one resource, keeps.
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

    /// Whether the budget is exceeded and this log holds more than its share.
    pub(crate) fn is_too_much(&self) -> bool {
        self.own > LogBudget::SHARE && self.budget.used() > self.budget.limit
    }
}

impl Drop for LogBytes {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.own, Ordering::Relaxed);
    }
}
