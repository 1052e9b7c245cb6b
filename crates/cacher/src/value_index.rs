//! The keys of objects by a value that objects have.

use crate::counted_tree::CountedTree;
use pintle_storage::Key;
use std::sync::Arc;

pub(crate) type KeyTree = CountedTree<Key>;

/// The memory of a key in a tree that is three quarters full, in bytes. The text of a key belongs to its object, too.
const KEY_BYTES: usize = 32;
/// The memory of a value beside its keys, in bytes: an entry of the map, and a node.
const VALUE_BYTES: usize = 160;

/// The keys of objects by the value of a field or label. Persistent: a clone takes constant time. They are keys and not
/// objects, so that a write which does not change the value, as most do not, does not change the index.
#[derive(Debug, Clone, Default)]
pub(crate) struct ValueIndex {
    /// No tree is empty.
    by_value: imbl::HashMap<Arc<str>, KeyTree>,
    /// The number of keys.
    keys: usize,
    /// The keys of the objects with any other value.
    none: KeyTree,
}

impl ValueIndex {
    /// The keys of the objects with a value.
    pub(crate) fn get(&self, value: &str) -> &KeyTree {
        self.by_value.get(value).unwrap_or(&self.none)
    }

    /// The number of different values.
    pub(crate) fn values(&self) -> usize {
        self.by_value.len()
    }

    /// The number of keys.
    pub(crate) fn keys(&self) -> usize {
        self.keys
    }

    /// The memory that the index takes, in bytes, about.
    pub(crate) fn bytes(&self) -> usize {
        self.keys * KEY_BYTES + self.by_value.len() * VALUE_BYTES
    }

    /// Adds the key of an object that is not in the index.
    pub(crate) fn insert(&mut self, value: &Arc<str>, key: Key) {
        self.keys += 1;
        match self.by_value.get_mut(value) {
            Some(keys) => _ = keys.insert(key),
            None => _ = self.by_value.insert(value.clone(), KeyTree::from_iter([key])),
        }
    }

    /// Removes the key of an object that is in the index with this value.
    pub(crate) fn remove(&mut self, value: &str, key: &Key) {
        let Some(keys) = self.by_value.get_mut(value) else { return };
        self.keys -= usize::from(keys.remove(key.as_str()).is_some());
        if keys.is_empty() {
            self.by_value.remove(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_has_its_keys() {
        let mut index = ValueIndex::default();
        let (x, y) = (Arc::from("x"), Arc::from("y"));
        for (value, key) in [(&x, "/a"), (&y, "/b"), (&x, "/c")] {
            index.insert(value, Key::new(key));
        }
        let keys = |index: &ValueIndex, value: &str| {
            index.get(value).iter().map(|key| key.as_str().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!((index.keys(), index.values()), (3, 2));
        assert_eq!(keys(&index, "x"), ["/a", "/c"]);
        assert_eq!(keys(&index, "z"), [""; 0]);
        let before = index.clone();
        index.remove("y", &Key::new("/b"));
        index.remove("x", &Key::new("/none"));
        index.remove("z", &Key::new("/a"));
        assert_eq!((index.keys(), index.values()), (2, 1));
        assert_eq!(keys(&before, "y"), ["/b"]);
        for key in ["/a", "/c"] {
            index.remove("x", &Key::new(key));
        }
        assert_eq!((index.keys(), index.values(), index.bytes()), (0, 0, 0));
    }
}
