//! Caches the trees of objects that admission reads often.

use super::Store;
use arc_swap::ArcSwapOption;
use pintle_cacher::CachedObject;
use pintle_machinery::{Status, Value};
use pintle_storage::Key;
use std::{
    hash::{BuildHasher, RandomState},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

/// A cache of decoded objects that admission reads often: namespaces, service accounts, classes. An entry is valid while
/// its object is the cached one.
///
/// Nearly every write reads its namespace here, so a hit takes no lock: the cache is a table of atomic pointers, with a
/// few slots for each hash of a key. Of entries that compete for a slot or for memory, those that were not read since the
/// last competition give way (the clock algorithm), so that objects that are read once do not displace the others.
pub(super) struct DecodedObjects {
    sets: Box<[Set]>,
    hasher: RandomState,
    /// The total size of the JSON of the entries.
    bytes: AtomicUsize,
    /// The position of the clock's hand, in slots.
    hand: AtomicUsize,
}

/// The slots of keys with the same hash.
type Set = [ArcSwapOption<Decoded>; SLOTS];

const SETS: usize = 256;
const SLOTS: usize = 4;

/// A cached object and its tree.
struct Decoded {
    cached: Arc<CachedObject>,
    value: Arc<Value>,
    /// The size of the JSON.
    bytes: usize,
    /// Whether it was read since the clock's hand has passed.
    read: AtomicBool,
}

impl Default for DecodedObjects {
    fn default() -> DecodedObjects {
        DecodedObjects {
            sets: (0..SETS).map(|_| Set::default()).collect(),
            hasher: RandomState::new(),
            bytes: AtomicUsize::new(0),
            hand: AtomicUsize::new(0),
        }
    }
}

impl DecodedObjects {
    /// The capacity in bytes of JSON: the objects of some thousand namespaces. The trees take some six times as much
    /// memory.
    const CAPACITY: usize = 1 << 20;
    /// The largest JSON that is kept, in bytes: one object must not displace all others.
    const LARGEST: usize = DecodedObjects::CAPACITY / 8;

    /// The tree of a cached object of the store.
    ///
    /// # Errors
    /// 500 when the object cannot be decoded.
    pub(super) fn get(&self, store: &Store, cached: &Arc<CachedObject>) -> Result<Arc<Value>, Status> {
        if let Some(value) = self.find(cached) {
            return Ok(value);
        }
        let json = cached.json();
        let value = Arc::new(store.stored_tree(&json)?);
        self.insert(cached, value.clone(), json.len());
        Ok(value)
    }

    fn find(&self, cached: &Arc<CachedObject>) -> Option<Arc<Value>> {
        self.set(cached.key())?.iter().find_map(|slot| {
            let slot = slot.load();
            let decoded = slot.as_ref().filter(|decoded| Arc::ptr_eq(&decoded.cached, cached))?;
            // The line of memory stays shared among the readers.
            if !decoded.read.load(Ordering::Relaxed) {
                decoded.read.store(true, Ordering::Relaxed);
            }
            Some(decoded.value.clone())
        })
    }

    fn set(&self, key: &Key) -> Option<&Set> {
        self.sets.get(usize::try_from(self.hasher.hash_one(key) % SETS as u64).ok()?)
    }

    /// Keeps a tree. Of two threads that insert the same object at once, one may take the slot of another object.
    fn insert(&self, cached: &Arc<CachedObject>, value: Arc<Value>, bytes: usize) {
        let Some(set) = self.set(cached.key()) else { return };
        let entry = Decoded { cached: cached.clone(), value, bytes, read: AtomicBool::new(false) };
        // Another revision of the object is of no use any more, even if this one is too large.
        let previous = set
            .iter()
            .find(|slot| slot.load().as_ref().is_some_and(|other| other.cached.key() == cached.key()));
        if bytes > DecodedObjects::LARGEST {
            previous.into_iter().for_each(|slot| self.replace(slot, None));
            return;
        }
        if let Some(slot) = previous.or_else(|| self.victim(set)) {
            self.replace(slot, Some(Arc::new(entry)));
        }
        self.shrink();
    }

    /// A slot of the set that is empty, or was not read since the last insertion, or any.
    fn victim<'a>(&self, set: &'a Set) -> Option<&'a ArcSwapOption<Decoded>> {
        let empty = set.iter().find(|slot| slot.load().is_none());
        let unread =
            || set.iter().find(|slot| slot.load().as_ref().is_none_or(|decoded| !decoded.take_read()));
        empty.or_else(unread).or_else(|| set.get(self.hand.fetch_add(1, Ordering::Relaxed) % SLOTS))
    }

    fn replace(&self, slot: &ArcSwapOption<Decoded>, entry: Option<Arc<Decoded>>) {
        let added = entry.as_ref().map_or(0, |entry| entry.bytes);
        self.bytes.fetch_add(added, Ordering::Relaxed);
        if let Some(gone) = slot.swap(entry) {
            self.bytes.fetch_sub(gone.bytes, Ordering::Relaxed);
        }
    }

    /// Drops entries until the others fit.
    fn shrink(&self) {
        // In the second round none of them counts as read, unless it was read meanwhile.
        for step in 0..3 * SETS * SLOTS {
            if self.bytes.load(Ordering::Relaxed) <= DecodedObjects::CAPACITY {
                return;
            }
            let hand = self.hand.fetch_add(1, Ordering::Relaxed) % (SETS * SLOTS);
            let Some(slot) = self.sets.get(hand / SLOTS).and_then(|set| set.get(hand % SLOTS)) else {
                return;
            };
            let is_read = slot.load().as_ref().is_none_or(|decoded| decoded.take_read());
            if !is_read || step >= 2 * SETS * SLOTS {
                self.replace(slot, None);
            }
        }
    }
}

impl Decoded {
    /// Whether the entry was read since the last call.
    fn take_read(&self) -> bool {
        self.read.swap(false, Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_cacher::DecodedObject;
    use pintle_storage::Revision;

    fn cached(name: usize, revision: u64) -> Arc<CachedObject> {
        let decoded = DecodedObject {
            json: Default::default(),
            packed: None,
            namespace: "".into(),
            name: name.to_string().as_str().into(),
            selectable: Arc::default(),
        };
        Arc::new(CachedObject::new(Key::new(format!("/{name:06}")), Revision(revision), decoded))
    }

    /// The entries, and the size that they add up to.
    fn kept(decoded: &DecodedObjects) -> (Vec<Arc<Decoded>>, usize) {
        let kept: Vec<_> = decoded.sets.iter().flatten().filter_map(ArcSwapOption::load_full).collect();
        let bytes = kept.iter().map(|decoded| decoded.bytes).sum();
        assert_eq!(decoded.bytes.load(Ordering::Relaxed), bytes);
        (kept, bytes)
    }

    /// Many large namespaces that admission reads take bounded memory.
    #[test]
    fn decoded_objects_are_kept_up_to_their_bytes() {
        let decoded = DecodedObjects::default();
        let value = Arc::new(Value::Null);
        let size = DecodedObjects::CAPACITY / 10;
        let hot = cached(0, 1);
        decoded.insert(&hot, value.clone(), size);
        for name in 1..100 {
            // The first object is read all the time.
            assert!(decoded.find(&hot).is_some(), "before {name}");
            decoded.insert(&cached(name, 1), value.clone(), size);
        }
        assert!(kept(&decoded).1 <= DecodedObjects::CAPACITY && kept(&decoded).0.len() >= 9);
        // Another revision replaces the one before it.
        let mut last = cached(99, 1);
        for revision in 2..100 {
            last = cached(99, revision);
            decoded.insert(&last, value.clone(), size);
        }
        let revisions = kept(&decoded).0.iter().filter(|decoded| decoded.cached.key() == last.key()).count();
        assert_eq!((revisions, decoded.find(&last).is_some()), (1, true));
        // An object that is too large is not kept, nor the one that it replaces.
        let large = cached(99, 100);
        decoded.insert(&large, value.clone(), DecodedObjects::LARGEST + 1);
        assert!(decoded.find(&large).is_none() && decoded.find(&last).is_none());
        assert!(kept(&decoded).1 <= DecodedObjects::CAPACITY);
    }

    /// The objects of a large cluster that are read once do not displace those that are read often.
    #[test]
    fn decoded_objects_are_kept_up_to_their_number() {
        let decoded = DecodedObjects::default();
        let value = Arc::new(Value::Null);
        let often: Vec<_> = (0..20).map(|name| cached(name, 1)).collect();
        let mut misses = 0;
        for name in 1_000..20_000 {
            for cached in &often {
                if decoded.find(cached).is_none() {
                    misses += 1;
                    decoded.insert(cached, value.clone(), 10);
                }
            }
            decoded.insert(&cached(name, 1), value.clone(), 10);
        }
        assert!(misses < 100, "{misses} of 380,000 reads missed");
        assert!(kept(&decoded).0.len() <= SETS * SLOTS);
    }

    #[test]
    fn threads_read_and_insert_at_once() {
        let decoded = DecodedObjects::default();
        let objects: Vec<_> = (0..3_000).map(|name| cached(name, 1)).collect();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (decoded, objects) = (&decoded, &objects);
                scope.spawn(move || {
                    for at in (0..30_000).map(|number| (number * 7 + thread * 11) % objects.len()) {
                        let object = &objects[at];
                        match decoded.find(object) {
                            Some(value) => assert_eq!(*value, Value::from(at)),
                            None => decoded.insert(object, Arc::new(Value::from(at)), 700),
                        }
                    }
                });
            }
        });
        assert!(kept(&decoded).1 <= DecodedObjects::CAPACITY + 4 * 700);
    }
}
