//! Groups watchers by the second in which their next bookmark is due.

use crate::{placed::Placed, watch_target::WatchTarget};
use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};
use tokio::time::Instant;

/// Watchers by the second in which their next bookmark is due.
pub(crate) struct BookmarkBuckets {
    created: Instant,
    period: Duration,
    buckets: BTreeMap<u64, Placed>,
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
        target.bookmark_bucket.store(bucket, Ordering::Relaxed);
        let targets = self.buckets.entry(bucket);
        targets.or_insert_with(|| Placed::new(|target| &target.in_bookmarks)).push(target.clone());
        first
    }

    /// Removes a watcher that has ended, at a cost that does not grow with their number.
    pub(crate) fn remove(&mut self, target: &Arc<WatchTarget>) {
        let bucket = target.bookmark_bucket.load(Ordering::Relaxed);
        let Some(targets) = self.buckets.get_mut(&bucket) else { return };
        targets.remove(target);
        if targets.is_empty() {
            self.buckets.remove(&bucket);
        }
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
            due.extend(bucket.into_vec());
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch_target::tests::target;

    #[test]
    fn watchers_that_ended_leave_nothing() {
        let now = Instant::now();
        let mut buckets = BookmarkBuckets::new(now, Duration::from_secs(60));
        let targets: Vec<_> =
            (0..9).map(|n| target((n % 3 > 0).then(|| now + Duration::from_secs(10 * n)))).collect();
        for target in &targets {
            buckets.insert(target, now);
        }
        assert_eq!(buckets.next_due(), Some(now + Duration::from_secs(9)));
        for target in &targets {
            buckets.remove(target);
        }
        assert!(buckets.buckets.is_empty());
        assert!(targets.iter().all(|target| Arc::strong_count(target) == 1));
    }
}
