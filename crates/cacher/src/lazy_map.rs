//! A map of lazily computed values that takes two words while empty.
//!
//! [`LazyMap`] holds values that are computed on first use and then shared: representations of an object, frames of
//! an event. Most objects are read in one representation only, so the empty map has to be small. Entries are never
//! removed, so readers walk the list without a lock and return references.

use parking_lot::Mutex;
use std::sync::OnceLock;

/// An append-only map for a handful of keys.
#[derive(Debug)]
pub(crate) struct LazyMap<K, V> {
    head: OnceLock<Box<Node<K, V>>>,
}

#[derive(Debug)]
struct Node<K, V> {
    key: K,
    value: OnceLock<V>,
    /// Held while `value` is computed, so that it is computed once; no other lock is held meanwhile.
    making: Mutex<()>,
    next: OnceLock<Box<Node<K, V>>>,
}

impl<K, V> Default for LazyMap<K, V> {
    fn default() -> Self {
        LazyMap { head: OnceLock::new() }
    }
}

impl<K: Copy + Eq, V> LazyMap<K, V> {
    /// The value of `key`; `make` computes it on first use. Concurrent callers with the same key wait for the first
    /// caller; when `make` fails the next caller calls its own.
    pub(crate) fn get_or_try_init<E>(&self, key: K, make: impl FnOnce() -> Result<V, E>) -> Result<&V, E> {
        let node = self.node(key);
        if let Some(value) = node.value.get() {
            return Ok(value);
        }
        let _making = node.making.lock();
        if let Some(value) = node.value.get() {
            return Ok(value);
        }
        let value = make()?;
        Ok(node.value.get_or_init(|| value))
    }

    /// The value of `key` if it has been computed.
    pub(crate) fn get(&self, key: K) -> Option<&V> {
        let mut slot = &self.head;
        while let Some(node) = slot.get() {
            if node.key == key {
                return node.value.get();
            }
            slot = &node.next;
        }
        None
    }

    /// The values that have been computed.
    pub(crate) fn values(&self) -> impl Iterator<Item = &V> {
        let mut slot = &self.head;
        let nodes = std::iter::from_fn(move || {
            let node = slot.get()?;
            slot = &node.next;
            Some(node)
        });
        nodes.filter_map(|node| node.value.get())
    }

    fn node(&self, key: K) -> &Node<K, V> {
        let mut slot = &self.head;
        loop {
            let node = slot.get_or_init(|| {
                Box::new(Node { key, value: OnceLock::new(), making: Mutex::new(()), next: OnceLock::new() })
            });
            if node.key == key {
                return node;
            }
            slot = &node.next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn an_empty_map_is_two_words() {
        assert!(size_of::<LazyMap<u32, bytes::Bytes>>() <= 2 * size_of::<usize>());
    }

    #[test]
    fn each_key_is_made_once_even_under_contention() {
        let map = LazyMap::default();
        let made = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for key in 0..16_u32 {
                        let value = map
                            .get_or_try_init(key, || {
                                made.fetch_add(1, Ordering::Relaxed);
                                Ok::<_, ()>(key * 10)
                            })
                            .unwrap();
                        assert_eq!(*value, key * 10);
                    }
                });
            }
        });
        assert_eq!(made.load(Ordering::Relaxed), 16);
        assert_eq!(map.get(3), Some(&30));
        assert_eq!(map.get(16), None);
    }

    #[test]
    fn a_failure_is_not_remembered() {
        let map: LazyMap<u32, u32> = LazyMap::default();
        assert_eq!(map.get_or_try_init(1, || Err("no")), Err("no"));
        assert_eq!(map.get(1), None);
        assert_eq!(map.get_or_try_init(1, || Ok::<_, ()>(5)), Ok(&5));
    }
}
