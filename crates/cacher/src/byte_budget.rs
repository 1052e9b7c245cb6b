//! Bounds bytes that the caches of all resources keep in total.
//!
//! A server has as many caches as resources, and clients choose the number of custom resources. When all parts together
//! exceed the budget, a part that grows releases memory, down to a share that each part may keep.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// A budget of bytes that the caches of all resources share. Clones share the budget.
#[derive(Debug, Clone)]
pub struct ByteBudget {
    used: Arc<AtomicUsize>,
    limit: usize,
    share: usize,
}

impl ByteBudget {
    /// A budget of `limit` bytes, of which each part may keep `share` bytes even when the budget is exceeded.
    pub fn new(limit: usize, share: usize) -> ByteBudget {
        ByteBudget { used: Arc::default(), limit, share }
    }

    /// The default for the replaced and deleted objects that event logs and retained states keep.
    pub fn of_logs() -> ByteBudget {
        ByteBudget::new(128 << 20, 256 << 10)
    }

    /// The default for the JSON of the objects that are not compressed.
    pub fn of_open_objects() -> ByteBudget {
        ByteBudget::new(48 << 20, 1 << 20)
    }

    /// The default for the objects of the events that wait in the queues of watchers.
    pub fn of_queues() -> ByteBudget {
        ByteBudget::new(256 << 20, 128 << 10)
    }

    /// The default for the states that readers hold, beside what is part of the present ones.
    pub fn of_held_states() -> ByteBudget {
        ByteBudget::new(256 << 20, 8 << 20)
    }

    /// A budget that is never exceeded.
    pub fn unlimited() -> ByteBudget {
        ByteBudget::new(usize::MAX, usize::MAX)
    }

    /// The bytes that all parts keep now.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }
}

/// The bytes that one part keeps.
#[derive(Debug)]
pub(crate) struct BudgetedBytes {
    own: usize,
    budget: ByteBudget,
}

impl BudgetedBytes {
    pub(crate) fn new(budget: ByteBudget) -> BudgetedBytes {
        BudgetedBytes { own: 0, budget }
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

    pub(crate) fn set(&mut self, bytes: usize) {
        self.add(bytes.saturating_sub(self.own));
        self.remove(self.own.saturating_sub(bytes));
    }

    /// Whether the budget is exceeded and this part holds more than its share.
    pub(crate) fn is_too_much(&self) -> bool {
        self.own > self.budget.share && self.budget.used() > self.budget.limit
    }
}

impl Drop for BudgetedBytes {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.own, Ordering::Relaxed);
    }
}
