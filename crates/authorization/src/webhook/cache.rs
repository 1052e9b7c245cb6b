//! An LRU cache of webhook decisions.

use crate::review::ReviewStatus;
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::{Duration, Instant},
};

/// Caches the decisions that were used last, each at most for its TTL.
#[derive(Default)]
pub(super) struct AnswerCache {
    entries: HashMap<Arc<[u8]>, Entry>,
    /// Requests by the time of their last use.
    uses: BTreeMap<u64, Arc<[u8]>>,
    clock: u64,
}

struct Entry {
    status: ReviewStatus,
    until: Instant,
    used: u64,
}

/// The capacity, in decisions.
const CAPACITY: usize = 8192;

impl AnswerCache {
    pub(super) fn get(&mut self, question: &[u8], now: Instant) -> Option<ReviewStatus> {
        let (key, entry) = self.entries.get_key_value(question)?;
        let key = key.clone();
        if entry.until <= now {
            self.uses.remove(&entry.used);
            self.entries.remove(question);
            return None;
        }
        self.clock += 1;
        let clock = self.clock;
        let entry = self.entries.get_mut(question)?;
        self.uses.remove(&entry.used);
        entry.used = clock;
        self.uses.insert(clock, key);
        Some(entry.status.clone())
    }

    pub(super) fn set(&mut self, question: &[u8], status: ReviewStatus, now: Instant, ttl: Duration) {
        let Some(until) = now.checked_add(ttl).filter(|_| !ttl.is_zero()) else { return };
        self.clock += 1;
        let key: Arc<[u8]> = question.into();
        let entry = Entry { status, until, used: self.clock };
        if let Some(before) = self.entries.insert(key.clone(), entry) {
            self.uses.remove(&before.used);
        }
        self.uses.insert(self.clock, key);
        while self.entries.len() > CAPACITY {
            let Some((_, oldest)) = self.uses.pop_first() else { break };
            self.entries.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(allowed: bool) -> ReviewStatus {
        ReviewStatus { allowed, denied: false, reason: "".into() }
    }

    #[test]
    fn answers_are_forgotten_in_time() {
        let (mut cache, start) = (AnswerCache::default(), Instant::now());
        cache.set(b"a", status(true), start, Duration::from_secs(10));
        cache.set(b"b", status(true), start, Duration::ZERO);
        assert_eq!(cache.get(b"a", start + Duration::from_secs(9)), Some(status(true)));
        assert_eq!(cache.get(b"b", start), None);
        assert_eq!(cache.get(b"a", start + Duration::from_secs(10)), None);
        assert!(cache.entries.is_empty() && cache.uses.is_empty());
    }

    #[test]
    fn what_is_asked_most_recently_stays() {
        let (mut cache, now) = (AnswerCache::default(), Instant::now());
        for question in 0..CAPACITY {
            cache.set(&question.to_be_bytes(), status(true), now, Duration::from_secs(1));
        }
        assert!(cache.get(&0usize.to_be_bytes(), now).is_some());
        cache.set(b"one more", status(false), now, Duration::from_secs(1));
        assert!(cache.get(&0usize.to_be_bytes(), now).is_some());
        assert!(cache.get(&1usize.to_be_bytes(), now).is_none());
        assert_eq!(cache.entries.len(), CAPACITY);
        assert_eq!(cache.uses.len(), CAPACITY);
    }
}
