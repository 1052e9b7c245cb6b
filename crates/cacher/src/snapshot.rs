//! Immutable snapshots of one resource's objects at one revision.

use crate::{CachedObject, UnreadableObject};
use pintle_storage::{Key, Revision};
use std::{ops::Bound, sync::Arc};

pub(crate) type ObjectMap = imbl::OrdMap<Key, Arc<CachedObject>>;
pub(crate) type UnreadableMap = imbl::OrdMap<Key, Arc<UnreadableObject>>;

/// All objects of a resource at one revision. Immutable; a clone shares all data, so a reader may keep one for the
/// length of a response while writes continue.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    objects: ObjectMap,
    unreadable: UnreadableMap,
    revision: Revision,
}

impl Snapshot {
    pub(crate) fn new(objects: ObjectMap, unreadable: UnreadableMap, revision: Revision) -> Snapshot {
        Snapshot { objects, unreadable, revision }
    }

    pub(crate) fn objects(&self) -> &ObjectMap {
        &self.objects
    }

    pub(crate) fn unreadable_objects(&self) -> &UnreadableMap {
        &self.unreadable
    }

    /// Inserts the result of reading one key.
    pub(crate) fn put(&mut self, key: Key, read: Result<Arc<CachedObject>, UnreadableObject>) {
        match read {
            Ok(object) => drop(self.objects.insert(key, object)),
            Err(object) => drop(self.unreadable.insert(key, Arc::new(object))),
        }
    }

    /// The same objects at a later revision. The caller knows that nothing was written in between.
    pub(crate) fn at_least(mut self, revision: Revision) -> Snapshot {
        self.revision = self.revision.max(revision);
        self
    }

    /// The revision of this state: the resource version of a list made from it.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// One object.
    pub fn get(&self, key: &Key) -> Option<&Arc<CachedObject>> {
        self.objects.get(key)
    }

    /// The revision and the error of a stored value that could not be read; `None` if the key has no such value.
    pub fn unreadable(&self, key: &Key) -> Option<&Arc<UnreadableObject>> {
        self.unreadable.get(key)
    }

    /// The keys with this prefix whose values could not be read, with the errors, in key order.
    pub fn unreadable_range<'a>(
        &'a self,
        prefix: &'a str,
    ) -> impl Iterator<Item = (&'a Key, &'a Arc<UnreadableObject>)> {
        let from = (Bound::Included(prefix), Bound::Unbounded);
        self.unreadable.range::<_, str>(from).take_while(move |(key, _)| key.as_str().starts_with(prefix))
    }

    /// The objects whose keys have this prefix, in key order; with `start_after` only those after that key.
    pub fn range<'a>(&'a self, prefix: &'a str, start_after: Option<&'a Key>) -> Range<'a> {
        let start = match start_after {
            Some(key) if key.as_str() >= prefix => Bound::Excluded(key.as_str()),
            _ => Bound::Included(prefix),
        };
        Range { objects: self.objects.range::<_, str>((start, Bound::Unbounded)), prefix }
    }

    /// The number of objects that [`Snapshot::range`] returns. Constant time for the whole resource, otherwise linear
    /// in the range.
    pub fn count(&self, prefix: &str, start_after: Option<&Key>) -> usize {
        match (start_after, self.objects.get_min(), self.objects.get_max()) {
            (None, Some((first, _)), Some((last, _)))
                if first.as_str().starts_with(prefix) && last.as_str().starts_with(prefix) =>
            {
                // Keys between two keys with the same prefix have that prefix, too.
                self.objects.len()
            }
            _ => self.range(prefix, start_after).count(),
        }
    }

    /// Whether another snapshot of the resource shares all objects with this one. Constant time: equal objects that do
    /// not share their map are not recognized.
    pub fn shares_objects_with(&self, other: &Snapshot) -> bool {
        self.objects.ptr_eq(&other.objects)
    }

    /// The number of objects.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Whether the snapshot has no objects.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }
}

/// The iterator that [`Snapshot::range`] returns.
pub struct Range<'a> {
    objects: imbl::ordmap::RangedIter<'a, Key, Arc<CachedObject>, imbl::shared_ptr::DefaultSharedPtr>,
    prefix: &'a str,
}

impl<'a> Iterator for Range<'a> {
    type Item = &'a Arc<CachedObject>;

    fn next(&mut self) -> Option<Self::Item> {
        let (key, object) = self.objects.next()?;
        key.as_str().starts_with(self.prefix).then_some(object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::object;

    #[test]
    fn range_is_the_prefix_in_key_order_after_the_start() {
        let objects = ["/p/a/1", "/p/a/2", "/p/b/1", "/p/ab/1", "/q/a/1"];
        let snapshot = Snapshot::new(
            objects.iter().map(|key| (Key::new(*key), object(key, 5))).collect(),
            Default::default(),
            Revision(5),
        );
        let check = |prefix: &str, start_after: Option<&str>, expected: &[&str]| {
            let start_after = start_after.map(Key::new);
            let keys: Vec<_> =
                snapshot.range(prefix, start_after.as_ref()).map(|object| object.key().as_str()).collect();
            assert_eq!(keys, expected, "{prefix} after {start_after:?}");
            assert_eq!(snapshot.count(prefix, start_after.as_ref()), expected.len());
        };
        check("/p/", None, &["/p/a/1", "/p/a/2", "/p/ab/1", "/p/b/1"]);
        check("/p/a/", None, &["/p/a/1", "/p/a/2"]);
        check("/p/a/", Some("/p/a/1"), &["/p/a/2"]);
        check("/p/a/", Some("/p/a/2"), &[]);
        check("/p/a/", Some("/a"), &["/p/a/1", "/p/a/2"]);
        check("/p/a/", Some("/p/b/1"), &[]);
        check("/p/", Some("/p/a/gone"), &["/p/ab/1", "/p/b/1"]);
        check("/", None, &["/p/a/1", "/p/a/2", "/p/ab/1", "/p/b/1", "/q/a/1"]);
        check("/z", None, &[]);
        assert_eq!(Snapshot::default().count("/", None), 0);
    }
}
