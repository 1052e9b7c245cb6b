//! Values that are held until they are dropped or their deadline has passed.

use parking_lot::Mutex;
use std::{
    collections::BTreeMap,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// A value that is dropped together with this, or at its deadline.
pub struct Held<T> {
    slot: Arc<Slot<T>>,
    key: Key,
    deadlines: Arc<Deadlines<T>>,
}

/// The value, until it is dropped.
type Slot<T> = Mutex<Option<T>>;

/// The deadline of a value, and a number that distinguishes values with the same deadline.
type Key = (Duration, u64);

/// The held values, by deadline.
pub(crate) struct Deadlines<T> {
    next: AtomicU64,
    by_end: Mutex<BTreeMap<Key, Weak<Slot<T>>>>,
}

impl<T> Default for Deadlines<T> {
    fn default() -> Self {
        Deadlines { next: AtomicU64::default(), by_end: Mutex::default() }
    }
}

impl<T> Deadlines<T> {
    /// Holds the value until `end` at most. [`Deadlines::release_expired`] enforces that.
    pub(crate) fn hold(self: &Arc<Self>, value: T, end: Duration) -> Held<T> {
        let key = (end, self.next.fetch_add(1, Ordering::Relaxed));
        let slot = Arc::new(Mutex::new(Some(value)));
        self.by_end.lock().insert(key, Arc::downgrade(&slot));
        Held { slot, key, deadlines: self.clone() }
    }

    /// Drops the values whose deadline has passed.
    pub(crate) fn release_expired(&self, now: Duration) {
        let expired = {
            let mut by_end = self.by_end.lock();
            let later = by_end.split_off(&(now, 0));
            std::mem::replace(&mut *by_end, later)
        };
        for slot in expired.into_values().filter_map(|slot| slot.upgrade()) {
            let value = slot.lock().take();
            drop(value);
        }
    }
}

impl<T> Drop for Held<T> {
    fn drop(&mut self) {
        self.deadlines.by_end.lock().remove(&self.key);
        let value = self.slot.lock().take();
        drop(value);
    }
}
