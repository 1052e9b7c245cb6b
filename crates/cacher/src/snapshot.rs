//! Immutable snapshots of one resource's objects at one revision.

use crate::{
    CachedObject, Requirement, UnreadableObject,
    counted_tree::{CountedTree, Entries, Keyed},
    object_map::{ObjectMap, ObjectTree},
};
use pintle_storage::{Key, Revision};
use std::{ops::Bound, sync::Arc};

pub(crate) type UnreadableMap = imbl::OrdMap<Key, Arc<UnreadableObject>>;

/// All objects of a resource at one revision. Immutable; a clone shares all data, so a reader may keep one for the
/// length of a response while writes continue.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    objects: ObjectMap,
    unreadable: UnreadableMap,
    revision: Revision,
    /// Whether it is a state of the cache: all objects of the resource, most of which it shares with other states.
    is_of_cache: bool,
}

impl Snapshot {
    pub(crate) fn new(objects: ObjectMap, unreadable: UnreadableMap, revision: Revision) -> Snapshot {
        Snapshot { objects, unreadable, revision, is_of_cache: true }
    }

    /// Objects that were read from the store for one request: those of a prefix, or a part of them.
    pub(crate) fn of_storage(objects: ObjectMap, unreadable: UnreadableMap, revision: Revision) -> Snapshot {
        Snapshot { objects, unreadable, revision, is_of_cache: false }
    }

    /// Whether it is a state of the cache, and not a part that was read from the store.
    pub(crate) fn is_of_cache(&self) -> bool {
        self.is_of_cache
    }

    /// Whether both are the same state of the cache, possibly at different revisions. Constant time: equal states that do
    /// not share their objects are not recognized.
    pub fn is_same_state(&self, other: &Snapshot) -> bool {
        self.is_of_cache
            && other.is_of_cache
            && self.objects.ptr_eq(&other.objects)
            && self.unreadable.ptr_eq(&other.unreadable)
    }

    /// Some objects of this state alone, [opened](CachedObject::opened).
    pub fn opened<'a>(&self, objects: impl Iterator<Item = &'a Arc<CachedObject>>) -> Snapshot {
        let objects = objects.map(|object| Arc::new(object.opened())).collect();
        Snapshot::of_storage(objects, UnreadableMap::new(), self.revision)
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
            Ok(object) => drop(self.objects.insert(object)),
            Err(object) => drop(self.unreadable.insert(key, Arc::new(object))),
        }
    }

    /// The state of the cache with the same objects, which are the whole resource, indexed by the fields at these
    /// positions among the selectable fields.
    pub(crate) fn into_state(self, indexed_fields: impl IntoIterator<Item = usize>) -> Snapshot {
        Snapshot { objects: self.objects.indexed_by(indexed_fields), is_of_cache: true, ..self }
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
        self.objects.get(key.as_str())
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
    pub fn range(&self, prefix: &str, start_after: Option<&Key>) -> Range<'_> {
        Range { objects: Candidates::Between(between(self.objects.by_key(), prefix, start_after)) }
    }

    /// The objects whose keys have this prefix, those that cannot be read any more in the last state that this process has
    /// seen, after the others; `None` if one of them has never been seen.
    pub fn last_seen<'a>(&'a self, prefix: &'a str) -> Option<impl Iterator<Item = &'a Arc<CachedObject>>> {
        let lost = self.unreadable_range(prefix).map(|(_, unreadable)| unreadable.last.as_ref());
        let lost: Vec<_> = lost.collect::<Option<_>>()?;
        Some(self.range(prefix, None).chain(lost))
    }

    /// The objects of [`Snapshot::range`] that may meet a requirement, in key order. With an index these are the ones
    /// that meet it (of several labels: one of them), and the cost does not depend on the others; otherwise they are all.
    pub fn candidates(
        &self,
        prefix: &str,
        start_after: Option<&Key>,
        requirement: Option<&Requirement>,
    ) -> Range<'_> {
        match requirement {
            Some(Requirement::Field(field, value)) => match self.objects.by_field(*field, value) {
                Some(keys) => {
                    let (keys, tree) = (between(keys, prefix, start_after), self.objects.by_key());
                    Range { objects: Candidates::Indexed { keys, tree } }
                }
                None => self.range(prefix, start_after),
            },
            Some(Requirement::Labels(labels)) => match self.objects.by_labels(labels) {
                Some(keys) => {
                    let (keys, tree) = (between(keys, prefix, start_after), self.objects.by_key());
                    Range { objects: Candidates::Indexed { keys, tree } }
                }
                None => self.range(prefix, start_after),
            },
            Some(Requirement::Name(name)) => {
                let tree = self.objects.by_key();
                let (from, to) = positions(tree, prefix, start_after);
                Range { objects: Candidates::Named(Named { tree, name: name.clone(), from, to }) }
            }
            None => self.range(prefix, start_after),
        }
    }

    /// The number of objects that [`Snapshot::range`] returns. Logarithmic time.
    pub fn count(&self, prefix: &str, start_after: Option<&Key>) -> usize {
        let (from, to) = positions(self.objects.by_key(), prefix, start_after);
        to - from
    }

    /// The number of objects.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Whether the snapshot has no objects.
    pub fn is_empty(&self) -> bool {
        self.objects.len() == 0
    }
}

/// The positions of the first entry of a range, and of the first one after the range.
fn positions<E: Keyed>(tree: &CountedTree<E>, prefix: &str, start_after: Option<&Key>) -> (usize, usize) {
    let from = match start_after {
        Some(start) if start.as_str() >= prefix => tree.position(|key| key <= start.as_str()),
        _ => tree.position(|key| key < prefix),
    };
    let to = tree.position(|key| key < prefix || key.starts_with(prefix));
    (from, to.max(from))
}

fn between<'a, E: Keyed>(
    tree: &'a CountedTree<E>,
    prefix: &str,
    start_after: Option<&Key>,
) -> Entries<'a, E> {
    let (from, to) = positions(tree, prefix, start_after);
    tree.between(from, to)
}

/// The iterator that [`Snapshot::range`] and [`Snapshot::candidates`] return.
pub struct Range<'a> {
    objects: Candidates<'a>,
}

enum Candidates<'a> {
    Between(Entries<'a, Arc<CachedObject>>),
    Indexed { keys: Entries<'a, Key>, tree: &'a ObjectTree },
    Named(Named<'a>),
}

impl<'a> Iterator for Range<'a> {
    type Item = &'a Arc<CachedObject>;

    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.objects {
            Candidates::Between(objects) => objects.next(),
            Candidates::Indexed { keys, tree } => keys.find_map(|key| tree.get(key.as_str())),
            Candidates::Named(named) => named.next(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match &self.objects {
            Candidates::Between(objects) => objects.size_hint(),
            Candidates::Indexed { keys, .. } => keys.size_hint(),
            Candidates::Named(named) => (0, Some(named.to.saturating_sub(named.from))),
        }
    }
}

/// The objects of one name: one lookup in each namespace.
struct Named<'a> {
    tree: &'a ObjectTree,
    name: Arc<str>,
    /// The position of the first object that was not looked at.
    from: usize,
    to: usize,
}

impl<'a> Named<'a> {
    fn next(&mut self) -> Option<&'a Arc<CachedObject>> {
        while self.from < self.to {
            let first = self.tree.between(self.from, self.to).next()?.key().as_str();
            // The name is the last segment of a key.
            let namespace = first.get(..first.len() - first.rsplit('/').next()?.len())?;
            let position = |key: &str| self.tree.position(|other| other < key);
            let wanted = format!("{namespace}{}", self.name);
            let at = position(&wanted).max(self.from);
            self.from = self.tree.position(|key| key < namespace || key.starts_with(namespace));
            let found = self.tree.between(at, self.to.min(self.from)).next();
            if let Some(found) = found.filter(|found| found.key().as_str() == wanted) {
                return Some(found);
            }
        }
        None
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
            objects.iter().map(|key| object(key, 5)).collect(),
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
