//! Groups watchers by the second in which their next bookmark is due.

use crate::watch_target::WatchTarget;
use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
    time::Duration,
};
use tokio::time::Instant;

/// Watchers by the second in which their next bookmark is due. Ended watchers stay until their bucket is due.
pub(crate) struct BookmarkBuckets {
    created: Instant,
    period: Duration,
    buckets: BTreeMap<u64, Vec<Weak<WatchTarget>>>,
}

impl BookmarkBuckets {
    pub(crate) fn new(now: Instant, period: Duration) -> BookmarkBuckets {
        BookmarkBuckets { created: now, period, buckets: BTreeMap::new() }
    }

    /// Puts a watcher into the bucket of its next bookmark, if there is one. Returns whether that bucket is now the
    /// first.
    pub(crate) fn insert(&mut self, target: &Arc<WatchTarget>, now: Instant) -> bool {
        let Some(due) = target.next_bookmark(now, self.period) else { return false };
        // Rounded up: otherwise a watcher would be due again in the second of its last bookmark.
        let bucket = due.saturating_duration_since(self.created).as_secs() + 1;
        let first = self.buckets.first_key_value().is_none_or(|(first, _)| bucket < *first);
        self.buckets.entry(bucket).or_default().push(Arc::downgrade(target));
        first
    }

    /// The time at which the first bucket is due.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        let (first, _) = self.buckets.first_key_value()?;
        Some(self.created + Duration::from_secs(*first))
    }

    /// Removes and returns the watchers that are due.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Vec<Arc<WatchTarget>> {
        let mut due = Vec::new();
        while self.next_due().is_some_and(|at| at <= now)
            && let Some((_, bucket)) = self.buckets.pop_first()
        {
            due.extend(bucket.iter().filter_map(Weak::upgrade));
        }
        due
    }
}
