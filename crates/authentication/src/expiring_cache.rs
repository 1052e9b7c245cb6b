//! A bounded cache whose entries expire.

use hashlink::LruCache;
use parking_lot::Mutex;
use ring::{
    hmac,
    rand::{SecureRandom, SystemRandom},
};
use tokio::time::Instant;

/// The key of an entry: a keyed hash, so that clients cannot provoke collisions, and keys disclose nothing.
pub(crate) type CacheKey = [u8; 32];

/// Makes keys, with a secret of this process.
pub(crate) struct KeyMaker(hmac::Key);

impl KeyMaker {
    pub(crate) fn new() -> KeyMaker {
        let mut secret = [0; 32];
        // Without system randomness keys are plain hashes; no secret depends on them.
        let _ = SystemRandom::new().fill(&mut secret);
        KeyMaker(hmac::Key::new(hmac::HMAC_SHA256, &secret))
    }

    /// The key of some texts. Lengths are hashed too, so that text boundaries matter.
    pub(crate) fn key<'a>(&self, parts: impl IntoIterator<Item = &'a [u8]>) -> CacheKey {
        let mut context = hmac::Context::with_key(&self.0);
        for part in parts {
            context.update(&(part.len() as u64).to_be_bytes());
            context.update(part);
        }
        let mut key = CacheKey::default();
        key.copy_from_slice(context.sign().as_ref());
        key
    }
}

struct Entry<V> {
    value: V,
    until: Instant,
}

/// An LRU cache in stripes, each with its own lock, so that threads rarely contend.
pub(crate) struct ExpiringCache<V>(Box<[Stripe<V>]>);

type Stripe<V> = Mutex<LruCache<CacheKey, Entry<V>>>;

const STRIPES: usize = 32;

impl<V: Clone> ExpiringCache<V> {
    /// A cache of about `capacity` entries.
    pub(crate) fn new(capacity: usize) -> ExpiringCache<V> {
        let each = capacity.div_ceil(STRIPES).max(1);
        ExpiringCache((0..STRIPES).map(|_| Mutex::new(LruCache::new(each))).collect())
    }

    fn stripe(&self, key: &CacheKey) -> Option<&Stripe<V>> {
        self.0.get(usize::from(key.first().copied().unwrap_or_default()) % STRIPES)
    }

    /// The value of a key, if it has not expired.
    pub(crate) fn get(&self, key: &CacheKey) -> Option<V> {
        let mut stripe = self.stripe(key)?.lock();
        match stripe.get(key) {
            Some(entry) if entry.until > Instant::now() => Some(entry.value.clone()),
            Some(_) => {
                stripe.remove(key);
                None
            }
            None => None,
        }
    }

    /// Stores a value until a time, or until it is evicted.
    pub(crate) fn insert(&self, key: CacheKey, value: V, until: Instant) {
        let Some(stripe) = self.stripe(&key) else { return };
        let mut stripe = stripe.lock();
        let now = Instant::now();
        // Expired entries at the least recently used end are removed at once.
        while stripe.iter().next().is_some_and(|(_, entry)| entry.until <= now) {
            stripe.remove_lru();
        }
        stripe.insert(key, Entry { value, until });
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.0.iter().map(|stripe| stripe.lock().len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn entries_end_and_are_never_too_many() {
        let (keys, cache) = (KeyMaker::new(), ExpiringCache::new(64));
        let until = Instant::now() + Duration::from_secs(10);
        for number in 0..10_000_u32 {
            cache.insert(keys.key([&number.to_be_bytes()[..]]), number, until);
        }
        assert!(cache.len() <= 64);
        let key = keys.key([&b"last"[..]]);
        cache.insert(key, 1, until);
        assert_eq!(cache.get(&key), Some(1));
        tokio::time::advance(Duration::from_secs(11)).await;
        assert_eq!(cache.get(&key), None);
        // The next insert removes expired entries.
        for number in 0..1000_u32 {
            cache.insert(keys.key([&number.to_be_bytes()[..]]), number, Instant::now());
        }
        assert!(cache.len() <= STRIPES);
    }

    #[test]
    fn borders_between_texts_matter() {
        let keys = KeyMaker::new();
        assert_ne!(keys.key([&b"ab"[..], b"c"]), keys.key([&b"a"[..], b"bc"]));
        assert_ne!(keys.key([&b"ab"[..]]), KeyMaker::new().key([&b"ab"[..]]));
    }
}
