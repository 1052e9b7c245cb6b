//! The place of a watch target in a collection: [`Place`].

use std::sync::atomic::{AtomicUsize, Ordering};

/// The place of a target in one collection, which is read and written under the lock of that collection alone.
#[derive(Debug, Default)]
pub(crate) struct Place(AtomicUsize);

impl Place {
    pub(crate) fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn set(&self, place: usize) {
        self.0.store(place, Ordering::Relaxed);
    }
}
