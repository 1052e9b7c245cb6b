//! An LRU cache of answers.

use super::review::ReviewStatus;
use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

/// The capacity, in answers. With the limits of their sizes, the cache takes at most 20 MB.
pub(super) const CAPACITY: usize = 1024;

/// Caches the answers that were used last, each at most for its TTL.
#[derive(Default)]
pub(super) struct Answers {
    entries: HashMap<String, Entry>,
    clock: u64,
}

struct Entry {
    status: ReviewStatus,
    until: Instant,
    used: u64,
}

impl Answers {
    pub(super) fn get(&mut self, spec: &str, now: Instant) -> Option<ReviewStatus> {
        self.clock += 1;
        let entry = self.entries.get_mut(spec)?;
        if entry.until <= now {
            self.entries.remove(spec);
            return None;
        }
        entry.used = self.clock;
        Some(entry.status.clone())
    }

    pub(super) fn set(&mut self, spec: &str, status: ReviewStatus, now: Instant, ttl: Duration) {
        let Some(until) = now.checked_add(ttl).filter(|_| !ttl.is_zero()) else { return };
        self.clock += 1;
        self.entries.insert(spec.to_owned(), Entry { status, until, used: self.clock });
        if self.entries.len() > CAPACITY {
            // A search of a thousand entries takes less time than the call of the webhook that came before.
            let oldest =
                self.entries.iter().min_by_key(|(_, entry)| entry.used).map(|(spec, _)| spec.clone());
            oldest.map(|spec| self.entries.remove(&spec));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_kept_for_their_time() {
        let (mut answers, now) = (Answers::default(), Instant::now());
        let status = ReviewStatus { allowed: true, ..ReviewStatus::default() };
        answers.set("a", status.clone(), now, Duration::from_secs(5));
        answers.set("b", status.clone(), now, Duration::ZERO);
        assert_eq!(answers.get("a", now + Duration::from_secs(4)), Some(status));
        assert_eq!(answers.get("a", now + Duration::from_secs(5)), None);
        assert_eq!(answers.get("b", now), None);
    }

    #[test]
    fn the_least_recently_used_answer_is_forgotten() {
        let (mut answers, now) = (Answers::default(), Instant::now());
        let ttl = Duration::from_secs(5);
        for spec in 0..CAPACITY {
            answers.set(&spec.to_string(), ReviewStatus::default(), now, ttl);
        }
        assert!(answers.get("0", now).is_some());
        answers.set("more", ReviewStatus::default(), now, ttl);
        assert!(answers.get("0", now).is_some());
        assert!(answers.get("1", now).is_none());
        assert_eq!(answers.entries.len(), CAPACITY);
    }
}
