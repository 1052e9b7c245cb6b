//! Rate limiters by key, for a bounded number of keys.

use jiff::Timestamp;
use parking_lot::Mutex;
use std::{
    collections::{BTreeMap, HashMap},
    hash::{BuildHasher, RandomState},
    num::NonZeroUsize,
};

/// A token bucket for each key. The least recently used key is forgotten when there are too many, and then begins with a
/// full bucket.
///
/// Keys are kept as hashes, whose size does not depend on the requests: an entry takes about 100 bytes.
pub(super) struct RateLimiters {
    tokens_per_second: f64,
    burst: f64,
    max_keys: NonZeroUsize,
    hashers: [RandomState; 2],
    buckets: Mutex<Buckets>,
}

type Key = [u64; 2];

#[derive(Default)]
struct Buckets {
    by_key: HashMap<Key, Bucket>,
    /// The keys in the order of their last use.
    by_use: BTreeMap<u64, Key>,
    uses: u64,
}

struct Bucket {
    tokens: f64,
    filled_at: Timestamp,
    used: u64,
}

impl RateLimiters {
    pub(super) fn new(tokens_per_second: i64, burst: i64, max_keys: NonZeroUsize) -> RateLimiters {
        RateLimiters {
            tokens_per_second: tokens_per_second as f64,
            burst: burst as f64,
            max_keys,
            hashers: [RandomState::new(), RandomState::new()],
            buckets: Mutex::default(),
        }
    }

    /// Takes a token from the bucket of the key; returns whether there was one.
    pub(super) fn try_accept(&self, key: &str, now: Timestamp) -> bool {
        let [one, other] = &self.hashers;
        let key = [one.hash_one(key), other.hash_one(key)];
        let mut buckets = self.buckets.lock();
        let buckets = &mut *buckets;
        buckets.uses += 1;
        let used = buckets.uses;
        let bucket = buckets.by_key.entry(key).or_insert(Bucket { tokens: self.burst, filled_at: now, used });
        buckets.by_use.remove(&bucket.used);
        buckets.by_use.insert(used, key);
        bucket.used = used;
        // A clock that was set back adds nothing.
        let seconds = now.duration_since(bucket.filled_at).as_secs_f64().max(0.0);
        bucket.tokens = (bucket.tokens + seconds * self.tokens_per_second).min(self.burst);
        bucket.filled_at = now;
        let is_accepted = bucket.tokens >= 1.0;
        if is_accepted {
            bucket.tokens -= 1.0;
        }
        if buckets.by_key.len() > self.max_keys.get()
            && let Some((_, oldest)) = buckets.by_use.pop_first()
        {
            buckets.by_key.remove(&oldest);
        }
        is_accepted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: i64) -> Timestamp {
        Timestamp::from_millisecond(milliseconds).unwrap()
    }

    fn keys(max: usize) -> NonZeroUsize {
        NonZeroUsize::new(max).unwrap()
    }

    #[test]
    fn buckets_are_refilled_with_time() {
        let limiters = RateLimiters::new(2, 3, keys(10));
        let accept = |milliseconds| limiters.try_accept("a", at(milliseconds));
        assert!(accept(0) && accept(0) && accept(0) && !accept(0));
        assert!(!accept(499));
        assert!(accept(500));
        assert!(!accept(100));
        assert!(limiters.try_accept("b", at(100)));
        // No more than the burst is saved up.
        assert!(accept(60_000) && accept(60_000) && accept(60_000) && !accept(60_000));
    }

    #[test]
    fn the_number_of_keys_is_bounded() {
        let limiters = RateLimiters::new(1, 1, keys(100));
        for key in 0..10_000 {
            assert!(limiters.try_accept(&format!("{key}{}", "x".repeat(1000)), at(0)));
        }
        let buckets = limiters.buckets.lock();
        assert_eq!((buckets.by_key.len(), buckets.by_use.len()), (100, 100));
    }

    #[test]
    fn the_least_recently_used_key_is_forgotten() {
        let limiters = RateLimiters::new(1, 1, keys(2));
        let accept = |key: &str| limiters.try_accept(key, at(0));
        assert!(accept("a") && accept("b"));
        assert!(!accept("a"));
        assert!(accept("c"));
        assert!(!accept("a"));
        assert!(accept("b"));
    }
}
