//! Indexes watchers by the key, namespace or field value that they require of an object.
//!
//! Each watcher is in one bucket, the narrowest that its scope and trigger allow. An event is looked up in the few
//! buckets that its object's key, name, namespace and trigger values select, before and after the change; so its cost
//! does not grow with the number of watchers that cannot match it.

use crate::{CachedObject, TriggerField, bucket::Bucket, event::Change, watch_target::WatchTarget};
use std::{
    collections::HashMap,
    sync::{Arc, atomic::Ordering},
};

#[derive(Default)]
pub(crate) struct WatcherIndex {
    buckets: HashMap<Bucket, Vec<Arc<WatchTarget>>>,
    /// The indexes of the trigger fields among the selectable fields.
    fields: Vec<usize>,
}

impl WatcherIndex {
    pub(crate) fn new(triggers: &[TriggerField]) -> WatcherIndex {
        WatcherIndex {
            buckets: HashMap::new(),
            fields: triggers.iter().map(|trigger| trigger.index).collect(),
        }
    }

    pub(crate) fn insert(&mut self, target: Arc<WatchTarget>) {
        let bucket = self.buckets.entry(target.bucket.clone()).or_default();
        target.slot.store(bucket.len(), Ordering::Relaxed);
        bucket.push(target);
    }

    /// Removes a watcher, at a cost that does not grow with their number.
    pub(crate) fn remove(&mut self, target: &Arc<WatchTarget>) {
        let Some(bucket) = self.buckets.get_mut(&target.bucket) else { return };
        let at = target.slot.load(Ordering::Relaxed);
        // A target that was drained is in no bucket.
        if bucket.get(at).is_some_and(|other| Arc::ptr_eq(other, target)) {
            bucket.swap_remove(at);
            if let Some(moved) = bucket.get(at) {
                moved.slot.store(at, Ordering::Relaxed);
            }
        }
        if bucket.is_empty() {
            self.buckets.remove(&target.bucket);
        }
    }

    /// Removes all watchers and returns them.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Arc<WatchTarget>> {
        std::mem::take(&mut self.buckets).into_values().flatten()
    }

    /// Calls `visit` once for each watcher that the change may match.
    pub(crate) fn for_each_candidate(&self, change: &Change, mut visit: impl FnMut(&Arc<WatchTarget>)) {
        if self.buckets.is_empty() {
            return;
        }
        let mut look_into = |bucket: Bucket| {
            for target in self.buckets.get(&bucket).into_iter().flatten() {
                visit(target);
            }
        };
        let (current, previous) = (change.current.as_deref(), change.previous.as_deref());
        let Some(object) = current.or(previous) else { return };
        look_into(Bucket::All);
        if !object.namespace().is_empty() {
            look_into(Bucket::Namespace(object.namespace_arc().clone()));
        }
        look_into(Bucket::Name(object.name_arc().clone()));
        look_into(Bucket::Object(object.key().clone()));
        for field in &self.fields {
            let value = |object: Option<&CachedObject>| {
                object.and_then(|object| object.fields().get(*field)).cloned()
            };
            let (current, previous) = (value(current), value(previous));
            if previous != current
                && let Some(value) = previous
            {
                look_into(Bucket::Field(*field, value));
            }
            if let Some(value) = current {
                look_into(Bucket::Field(*field, value));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ByteBudget, WatchScope, event_log::Position, watch_target::WatchFilter};
    use pintle_storage::Revision;

    fn target() -> Arc<WatchTarget> {
        let filter =
            WatchFilter { scope: WatchScope::All, requirement: None, predicate: None, is_slow: false };
        let budget = ByteBudget::new(1 << 20, 0);
        Arc::new(WatchTarget::new(filter, Bucket::All, Revision(0), Position::default(), None, 1, budget))
    }

    #[test]
    fn watchers_are_removed_in_any_order() {
        let mut index = WatcherIndex::new(&[]);
        let mut left: Vec<_> = (0..50).map(|_| target()).collect();
        left.iter().for_each(|target| index.insert(target.clone()));
        // 7 is prime to 50: each is removed once, from the ends and from the middle.
        for step in 0..50 {
            let removed = left.remove((step * 7) % left.len());
            index.remove(&removed);
            // A second removal, as of a drained one, removes no other.
            index.remove(&removed);
            let found = index.buckets.get(&Bucket::All).map_or(&[][..], Vec::as_slice);
            assert_eq!(found.len(), left.len());
            let is_found = |target: &Arc<WatchTarget>| found.iter().any(|other| Arc::ptr_eq(other, target));
            assert!(left.iter().all(is_found));
        }
        assert!(index.buckets.is_empty());
    }
}
