//! A bounded cache whose entries are good for some time.

use hashlink::LruCache;
use parking_lot::Mutex;
use ring::{
    hmac,
    rand::{SecureRandom, SystemRandom},
};
use tokio::time::Instant;

/// What an entry is found by: a keyed hash, so that nobody can choose keys that meet, and nothing can be read from it.
pub(crate) type CacheKey = [u8; 32];

/// Makes keys, others in every process.
pub(crate) struct KeyMaker(hmac::Key);

impl KeyMaker {
    pub(crate) fn new() -> KeyMaker {
        let mut secret = [0; 32];
        // Without the system's randomness keys are still hashes; nothing that is secret hangs on them.
        let _ = SystemRandom::new().fill(&mut secret);
        KeyMaker(hmac::Key::new(hmac::HMAC_SHA256, &secret))
    }

    /// The key of some texts. Each counts with its length, so that their borders matter.
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

/// Who is used least recently makes room for others. Many threads at once meet at a lock seldom: there are as many as
/// stripes.
pub(crate) struct ExpiringCache<V>(Box<[Stripe<V>]>);

type Stripe<V> = Mutex<LruCache<CacheKey, Entry<V>>>;

const STRIPES: usize = 32;

impl<V: Clone> ExpiringCache<V> {
    /// A cache of at most about so many entries.
    pub(crate) fn new(capacity: usize) -> ExpiringCache<V> {
        let each = capacity.div_ceil(STRIPES).max(1);
        ExpiringCache((0..STRIPES).map(|_| Mutex::new(LruCache::new(each))).collect())
    }

    fn stripe(&self, key: &CacheKey) -> Option<&Stripe<V>> {
        self.0.get(usize::from(key.first().copied().unwrap_or_default()) % STRIPES)
    }

    /// What there is for a key, if it is still good.
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

    /// Keeps a value until a time, or until others need its place.
    pub(crate) fn insert(&self, key: CacheKey, value: V, until: Instant) {
        let Some(stripe) = self.stripe(&key) else { return };
        let mut stripe = stripe.lock();
        let now = Instant::now();
        // What nobody asks for any more is at the end, and given back without waiting for the place to be needed.
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
        // What is over makes room at the next turn.
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
