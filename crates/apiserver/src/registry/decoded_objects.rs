//! Caches the trees of objects that admission reads often.

use super::Store;
use hashlink::LruCache;
use pintle_cacher::CachedObject;
use pintle_machinery::Value;
use pintle_storage::Key;
use std::sync::Arc;

/// An LRU cache of decoded objects that admission reads often: namespaces, service accounts, classes. An entry is valid
/// while its object is the cached one.
pub(super) struct DecodedObjects(parking_lot::Mutex<KeptObjects>);

struct KeptObjects {
    by_key: LruCache<Key, Decoded>,
    /// The total size of their JSON.
    bytes: usize,
}

/// A cached object and its tree.
type Decoded = (Arc<CachedObject>, Arc<Value>);

impl Default for DecodedObjects {
    fn default() -> DecodedObjects {
        let kept = KeptObjects { by_key: LruCache::new_unbounded(), bytes: 0 };
        DecodedObjects(parking_lot::Mutex::new(kept))
    }
}

impl DecodedObjects {
    /// The capacity in bytes of JSON: some ten thousand namespaces. The trees take several times as much memory.
    const CAPACITY: usize = 8 << 20;

    /// The tree of a cached object of the store; `None` when it cannot be decoded.
    pub(super) fn get(&self, store: &Store, cached: &Arc<CachedObject>) -> Option<Arc<Value>> {
        if let Some((of, value)) = self.0.lock().by_key.get(cached.key())
            && Arc::ptr_eq(of, cached)
        {
            return Some(value.clone());
        }
        // Not under the lock: decoding takes time in proportion to the object's size.
        let value = Arc::new(store.stored_tree(&cached.json()).ok()?);
        self.0.lock().insert(cached, value.clone());
        Some(value)
    }
}

impl KeptObjects {
    fn insert(&mut self, cached: &Arc<CachedObject>, value: Arc<Value>) {
        self.bytes += cached.size();
        let mut gone = self.by_key.insert(cached.key().clone(), (cached.clone(), value));
        loop {
            if let Some((cached, _)) = gone {
                self.bytes = self.bytes.saturating_sub(cached.size());
            }
            if self.bytes <= DecodedObjects::CAPACITY {
                return;
            }
            match self.by_key.remove_lru() {
                Some((_, decoded)) => gone = Some(decoded),
                None => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_cacher::DecodedObject;
    use pintle_storage::Revision;

    fn cached(name: usize, revision: u64, bytes: usize) -> Arc<CachedObject> {
        let decoded = DecodedObject {
            json: vec![b'x'; bytes].into(),
            packed: None,
            namespace: "".into(),
            name: name.to_string().as_str().into(),
            selectable: Arc::default(),
        };
        Arc::new(CachedObject::new(Key::new(format!("/{name:06}")), Revision(revision), decoded))
    }

    /// Many large namespaces that admission reads take bounded memory.
    #[test]
    fn decoded_objects_are_kept_up_to_their_bytes() {
        let decoded = DecodedObjects::default();
        let mut kept = decoded.0.lock();
        let value = Arc::new(Value::Null);
        let size = DecodedObjects::CAPACITY / 10;
        for name in 0..100 {
            kept.insert(&cached(name, 1, size), value.clone());
            // The first object is read all the time.
            assert!(kept.by_key.get(&Key::new("/000000")).is_some());
        }
        let names: Vec<_> = kept.by_key.iter().map(|(key, _)| key.as_str().to_owned()).collect();
        assert_eq!((names.len(), kept.bytes), (10, 10 * size));
        assert!(names.contains(&"/000000".to_owned()) && names.contains(&"/000099".to_owned()), "{names:?}");
        // Another revision replaces the one before it.
        for revision in 2..100 {
            kept.insert(&cached(99, revision, size), value.clone());
        }
        assert_eq!((kept.by_key.len(), kept.bytes), (10, 10 * size));
        // An object larger than the capacity is not cached.
        kept.insert(&cached(100, 1, DecodedObjects::CAPACITY + 1), value);
        assert_eq!((kept.by_key.len(), kept.bytes), (0, 0));
    }
}
