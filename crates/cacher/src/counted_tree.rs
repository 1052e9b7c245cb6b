//! A persistent ordered map that knows the position of every key.
//!
//! A B+ tree whose nodes are shared by clones: a write copies the nodes on its path that another clone has too, and
//! changes the others in place. Each branch has the number of entries below each of its children, so that the number of
//! keys in a range is known without a walk, which persistent maps elsewhere do not offer.
//!
//! ```text
//!   branch   separators      k3        k6
//!            children    3 │        3 │        2        (entries below)
//!                        ▼          ▼          ▼
//!   leaves           k1 k2 k3   k4 k5 k6    k7 k8
//! ```
//!
//! Invariants: the keys below a child are greater than the separator before it and not greater than the one after it; a
//! branch has one separator less than children; no node but an empty root is empty. A separator may be a key that has
//! been removed, so that most writes leave the separators alone.
//!
//! A key is the text of an object somewhere else in memory, which a search compares five times in a leaf, each time with
//! a miss of the processor's caches. So each entry of a leaf has a mark, a hash of its key, beside it: looking one key up
//! compares marks, and mostly one text.

use crate::CachedObject;
use pintle_storage::Key;
use std::{slice, sync::Arc};

/// An entry of a tree.
pub(crate) trait Keyed: Clone {
    /// The key by which the entry is found.
    fn key(&self) -> &Key;
}

impl Keyed for Arc<CachedObject> {
    fn key(&self) -> &Key {
        CachedObject::key(self)
    }
}

impl Keyed for Key {
    fn key(&self) -> &Key {
        self
    }
}

/// The greatest number of entries in a leaf, and of children in a branch.
const CAPACITY: usize = 32;
/// The size up to which two neighbours become one node. Less than the capacity, so that a node that was split is not
/// joined by the next removal.
const JOINED: usize = CAPACITY * 3 / 4;
/// The number of entries in a leaf, or children in a branch, of a tree that is made at once: with room for some writes.
const PACKED: usize = CAPACITY * 7 / 8;

/// A hash of a key. Entries with equal marks may have different keys: at worst, a lookup compares all keys of a leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mark(u32);

impl Mark {
    fn of(key: &str) -> Mark {
        /// An odd number without a pattern: the upper half of a product depends on all bits of the factor.
        const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut hash = 0_u64;
        for chunk in key.as_bytes().chunks(8) {
            let word = chunk.iter().fold(0_u64, |word, byte| word << 8 | u64::from(*byte));
            hash = (hash.rotate_left(5) ^ word).wrapping_mul(FACTOR);
        }
        let [.., a, b, c, d] = hash.to_le_bytes();
        Mark(u32::from_le_bytes([a, b, c, d]))
    }
}

/// An entry of a leaf.
#[derive(Debug, Clone)]
struct Marked<E> {
    mark: Mark,
    entry: E,
}

impl<E: Keyed> Marked<E> {
    fn new(entry: E) -> Marked<E> {
        Marked { mark: Mark::of(entry.key().as_str()), entry }
    }

    fn is_of(&self, mark: Mark, key: &str) -> bool {
        self.mark == mark && self.entry.key().as_str() == key
    }
}

/// The position of the entry with a key.
fn find<E: Keyed>(leaf: &[Marked<E>], mark: Mark, key: &str) -> Option<usize> {
    leaf.iter().position(|marked| marked.is_of(mark, key))
}

/// Entries by their keys. A clone takes constant time and shares all entries.
#[derive(Debug, Clone)]
pub(crate) struct CountedTree<E> {
    root: Arc<Node<E>>,
    len: usize,
}

#[derive(Debug)]
enum Node<E> {
    Leaf(Vec<Marked<E>>),
    Branch(Branch<E>),
}

#[derive(Debug)]
struct Branch<E> {
    /// Shared by the copies of a branch, because only splits and joins change it.
    separators: Arc<Vec<Key>>,
    children: Vec<Child<E>>,
}

#[derive(Debug)]
struct Child<E> {
    node: Arc<Node<E>>,
    /// The number of entries below.
    len: usize,
}

impl<E> Default for CountedTree<E> {
    fn default() -> CountedTree<E> {
        CountedTree { root: Arc::default(), len: 0 }
    }
}

impl<E> Clone for Child<E> {
    fn clone(&self) -> Child<E> {
        Child { node: self.node.clone(), len: self.len }
    }
}

impl<E> Default for Node<E> {
    fn default() -> Node<E> {
        Node::Leaf(Vec::new())
    }
}

impl<E: Clone> Clone for Node<E> {
    /// A copy with room for one more entry: most copies are made for a write.
    fn clone(&self) -> Node<E> {
        match self {
            Node::Leaf(entries) => Node::Leaf(copied(entries)),
            Node::Branch(Branch { separators, children }) => {
                Node::Branch(Branch { separators: separators.clone(), children: copied(children) })
            }
        }
    }
}

fn copied<T: Clone>(entries: &[T]) -> Vec<T> {
    let mut copy = Vec::with_capacity(entries.len() + 1);
    copy.extend_from_slice(entries);
    copy
}

/// Inserts without the doubling of [`Vec::insert`]: most nodes stay as they are for long.
fn insert_at<T>(entries: &mut Vec<T>, at: usize, entry: T) {
    entries.reserve_exact(1);
    entries.insert(at, entry);
}

/// The result of an insertion below a node.
struct Inserted<E> {
    replaced: Option<E>,
    /// The greater half of the node if it was split, with the separator before it.
    split: Option<(Key, Child<E>)>,
}

impl<E: Keyed> Node<E> {
    /// The number of entries in a leaf, or of children in a branch.
    fn size(&self) -> usize {
        match self {
            Node::Leaf(entries) => entries.len(),
            Node::Branch(branch) => branch.children.len(),
        }
    }

    /// The number of entries below.
    fn len(&self) -> usize {
        match self {
            Node::Leaf(entries) => entries.len(),
            Node::Branch(branch) => branch.children.iter().map(|child| child.len).sum(),
        }
    }

    fn insert(&mut self, marked: Marked<E>) -> Inserted<E> {
        match self {
            Node::Leaf(entries) => {
                let key = marked.entry.key();
                let found = find(entries, marked.mark, key.as_str());
                if let Some(place) = found.and_then(|at| entries.get_mut(at)) {
                    let replaced = std::mem::replace(place, marked);
                    return Inserted { replaced: Some(replaced.entry), split: None };
                }
                let at = entries.partition_point(|other| other.entry.key() < key);
                insert_at(entries, at, marked);
                if entries.len() <= CAPACITY {
                    return Inserted { replaced: None, split: None };
                }
                let greater = entries.split_off(cut(entries.len(), at));
                let split = entries.last().map(|last| {
                    let greater = Child { len: greater.len(), node: Arc::new(Node::Leaf(greater)) };
                    (last.entry.key().clone(), greater)
                });
                Inserted { replaced: None, split }
            }
            Node::Branch(branch) => branch.insert(marked),
        }
    }

    fn remove(&mut self, mark: Mark, key: &str) -> Option<E> {
        match self {
            Node::Leaf(entries) => find(entries, mark, key).map(|at| entries.remove(at).entry),
            Node::Branch(branch) => branch.remove(mark, key),
        }
    }
}

/// The position at which a node of `len` entries is split after an insertion at `at`. Keys that are inserted in
/// ascending order leave nodes behind that are fuller than half.
fn cut(len: usize, at: usize) -> usize {
    if at + 1 == len { JOINED } else { len / 2 }
}

impl<E: Keyed> Branch<E> {
    /// The position of the child that has the first key for which `is_before` is false, if any has.
    fn find(&self, is_before: impl Fn(&str) -> bool) -> usize {
        self.separators.partition_point(|separator| is_before(separator.as_str()))
    }

    fn child_of(&self, key: &str) -> usize {
        self.find(|separator| separator < key)
    }

    fn insert(&mut self, marked: Marked<E>) -> Inserted<E> {
        let at = self.child_of(marked.entry.key().as_str());
        let Some(child) = self.children.get_mut(at) else { return Inserted { replaced: None, split: None } };
        let Inserted { replaced, split } = Arc::make_mut(&mut child.node).insert(marked);
        child.len += usize::from(replaced.is_none());
        let Some((separator, greater)) = split else { return Inserted { replaced, split: None } };
        child.len -= greater.len;
        insert_at(Arc::make_mut(&mut self.separators), at, separator);
        insert_at(&mut self.children, at + 1, greater);
        if self.children.len() <= CAPACITY {
            return Inserted { replaced, split: None };
        }
        let cut = cut(self.children.len(), at + 1);
        let children = self.children.split_off(cut);
        let separators = Arc::make_mut(&mut self.separators);
        let greater = Arc::new(separators.split_off(cut));
        let split = separators.pop().map(|separator| {
            let node = Node::Branch(Branch { separators: greater, children });
            (separator, Child { len: node.len(), node: Arc::new(node) })
        });
        Inserted { replaced, split }
    }

    fn remove(&mut self, mark: Mark, key: &str) -> Option<E> {
        let at = self.child_of(key);
        let child = self.children.get_mut(at)?;
        let removed = Arc::make_mut(&mut child.node).remove(mark, key)?;
        child.len -= 1;
        if child.len == 0 {
            self.children.remove(at);
            let separators = Arc::make_mut(&mut self.separators);
            if !separators.is_empty() {
                // The separator after the child; that before it for the last child.
                separators.remove(at.min(separators.len() - 1));
            }
        } else if !self.join(at) && at > 0 {
            self.join(at - 1);
        }
        Some(removed)
    }

    /// Joins the child at `at` with the next one, if both are small.
    fn join(&mut self, at: usize) -> bool {
        let Some([child, next]) = self.children.get(at..at + 2) else { return false };
        if child.node.size() + next.node.size() > JOINED || at >= self.separators.len() {
            return false;
        }
        let next = self.children.remove(at + 1);
        let separator = Arc::make_mut(&mut self.separators).remove(at);
        let Some(child) = self.children.get_mut(at) else { return false };
        child.len += next.len;
        match (Arc::make_mut(&mut child.node), &*next.node) {
            (Node::Leaf(entries), Node::Leaf(more)) => entries.extend_from_slice(more),
            (Node::Branch(branch), Node::Branch(more)) => {
                let separators = Arc::make_mut(&mut branch.separators);
                separators.push(separator);
                separators.extend_from_slice(&more.separators);
                branch.children.extend_from_slice(&more.children);
            }
            // All leaves have the same depth.
            (Node::Leaf(_), Node::Branch(_)) | (Node::Branch(_), Node::Leaf(_)) => {}
        }
        true
    }
}

impl<E: Keyed> CountedTree<E> {
    /// The number of entries.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no entries.
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether both are clones of one tree, without a write since then.
    pub(crate) fn ptr_eq(&self, other: &CountedTree<E>) -> bool {
        Arc::ptr_eq(&self.root, &other.root)
    }

    /// Inserts an entry under its key; returns the one that it replaces.
    pub(crate) fn insert(&mut self, entry: E) -> Option<E> {
        let Inserted { replaced, split } = Arc::make_mut(&mut self.root).insert(Marked::new(entry));
        self.len += usize::from(replaced.is_none());
        if let Some((separator, greater)) = split {
            let lesser = Child { node: std::mem::take(&mut self.root), len: self.len - greater.len };
            let separators = Arc::new(vec![separator]);
            self.root = Arc::new(Node::Branch(Branch { separators, children: vec![lesser, greater] }));
        }
        replaced
    }

    /// Removes the entry with this key.
    pub(crate) fn remove(&mut self, key: &str) -> Option<E> {
        // Otherwise the search would copy the path.
        self.get(key)?;
        let removed = Arc::make_mut(&mut self.root).remove(Mark::of(key), key)?;
        self.len -= 1;
        while let Node::Branch(branch) = &*self.root {
            self.root = match branch.children.as_slice() {
                [] => Arc::default(),
                [only] => only.node.clone(),
                [..] => break,
            };
        }
        Some(removed)
    }

    /// The entry with this key.
    pub(crate) fn get(&self, key: &str) -> Option<&E> {
        let mut node = &self.root;
        loop {
            match &**node {
                Node::Leaf(entries) => {
                    let mark = Mark::of(key);
                    return entries.iter().find(|marked| marked.is_of(mark, key)).map(|marked| &marked.entry);
                }
                Node::Branch(branch) => node = &branch.children.get(branch.child_of(key))?.node,
            }
        }
    }

    /// The number of entries before the first key for which `is_before` is false. It must be true for all keys up to
    /// some key and false for all others. Logarithmic time.
    pub(crate) fn position(&self, is_before: impl Fn(&str) -> bool) -> usize {
        let mut position = 0;
        let mut node = &self.root;
        loop {
            match &**node {
                Node::Leaf(entries) => {
                    return position
                        + entries.partition_point(|marked| is_before(marked.entry.key().as_str()));
                }
                Node::Branch(branch) => {
                    let at = branch.find(&is_before);
                    position += branch.children.iter().take(at).map(|child| child.len).sum::<usize>();
                    let Some(child) = branch.children.get(at) else { return position };
                    node = &child.node;
                }
            }
        }
    }

    /// The entries from position `from` up to position `to`, in key order.
    pub(crate) fn between(&self, from: usize, to: usize) -> Entries<'_, E> {
        let mut entries = Entries { above: Vec::new(), leaf: [].iter(), left: to.saturating_sub(from) };
        if entries.left > 0 {
            entries.descend(&self.root, from);
        }
        entries
    }

    /// All entries, in key order.
    pub(crate) fn iter(&self) -> Entries<'_, E> {
        self.between(0, self.len)
    }
}

impl<E: Keyed> FromIterator<E> for CountedTree<E> {
    /// A tree of entries in ascending order of their keys is made at once; any other order is one insertion each.
    fn from_iter<I: IntoIterator<Item = E>>(entries: I) -> CountedTree<E> {
        let entries: Vec<_> = entries.into_iter().collect();
        if !entries.is_sorted_by(|a, b| a.key() < b.key()) {
            let mut tree = CountedTree::default();
            for entry in entries {
                tree.insert(entry);
            }
            return tree;
        }
        let len = entries.len();
        let last_key = |entries: &[E]| entries.last().map(|last| last.key().clone());
        // The nodes of one level, each with the greatest key below it.
        let mut level: Vec<(Option<Key>, Child<E>)> = entries
            .chunks(PACKED)
            .map(|chunk| {
                let leaf = chunk.iter().cloned().map(Marked::new).collect();
                let child = Child { node: Arc::new(Node::Leaf(leaf)), len: chunk.len() };
                (last_key(chunk), child)
            })
            .collect();
        while level.len() > 1 {
            let branch = |chunk: &[(Option<Key>, Child<E>)]| {
                let greatest: Vec<Key> = chunk.iter().filter_map(|(key, _)| key.clone()).collect();
                let (last, separators) = match greatest.split_last() {
                    Some((last, separators)) => (Some(last.clone()), separators.to_vec()),
                    None => (None, Vec::new()),
                };
                let children = chunk.iter().map(|(_, child)| child.clone()).collect();
                let node = Node::Branch(Branch { separators: Arc::new(separators), children });
                (last, Child { len: node.len(), node: Arc::new(node) })
            };
            level = level.chunks(PACKED).map(branch).collect();
        }
        let root = level.pop().map_or_else(Arc::default, |(_, child)| child.node);
        CountedTree { root, len }
    }
}

/// The iterator that [`CountedTree::between`] returns.
#[derive(Debug)]
pub(crate) struct Entries<'a, E> {
    /// For each branch above the leaf, the children after the one that was taken.
    above: Vec<slice::Iter<'a, Child<E>>>,
    leaf: slice::Iter<'a, Marked<E>>,
    left: usize,
}

impl<'a, E> Entries<'a, E> {
    /// Goes down to the leaf with the entry at `position` below a node.
    fn descend(&mut self, node: &'a Arc<Node<E>>, mut position: usize) {
        let mut node = node;
        loop {
            match &**node {
                Node::Leaf(entries) => {
                    self.leaf = entries.get(position..).unwrap_or_default().iter();
                    return;
                }
                Node::Branch(branch) => {
                    let mut children = branch.children.iter();
                    let child = children.by_ref().find(|child| {
                        let is_within = position < child.len;
                        if !is_within {
                            position -= child.len;
                        }
                        is_within
                    });
                    let Some(child) = child else { return };
                    self.above.push(children);
                    node = &child.node;
                }
            }
        }
    }
}

impl<'a, E> Iterator for Entries<'a, E> {
    type Item = &'a E;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        loop {
            if let Some(marked) = self.leaf.next() {
                return Some(&marked.entry);
            }
            let next = self.above.last_mut()?.next();
            match next {
                Some(child) => self.descend(&child.node, 0),
                None => _ = self.above.pop(),
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<E> ExactSizeIterator for Entries<'_, E> {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::object;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, HashMap};

    /// Checks the invariants below a node; returns the number of levels.
    fn check(
        node: &Node<Arc<CachedObject>>,
        after: Option<&Key>,
        until: Option<&Key>,
        is_root: bool,
    ) -> usize {
        assert!(is_root || node.size() > 0);
        assert!(node.size() <= CAPACITY);
        match node {
            Node::Leaf(entries) => {
                assert!(entries.is_sorted_by(|a, b| a.entry.key() < b.entry.key()));
                for Marked { mark, entry: object } in entries {
                    assert_eq!(*mark, Mark::of(object.key().as_str()));
                    assert!(after.is_none_or(|after| object.key() > after));
                    assert!(until.is_none_or(|until| object.key() <= until));
                }
                1
            }
            Node::Branch(Branch { separators, children }) => {
                assert_eq!(separators.len() + 1, children.len());
                let mut levels = Vec::new();
                for (at, child) in children.iter().enumerate() {
                    assert_eq!(child.len, child.node.len());
                    let after = at.checked_sub(1).map(|at| &separators[at]).or(after);
                    let until = separators.get(at).or(until);
                    levels.push(check(&child.node, after, until, false));
                }
                assert!(levels.iter().all(|level| *level == levels[0]), "{levels:?}");
                levels[0] + 1
            }
        }
    }

    fn key(number: u16) -> String {
        format!("/p/{number:05}")
    }

    /// Compares a tree with a map in every respect, and returns the number of levels.
    fn compare(tree: &CountedTree<Arc<CachedObject>>, map: &BTreeMap<String, u64>) -> usize {
        let levels = check(&tree.root, None, None, true);
        let found = tree.iter().map(|object| (object.key().to_string(), object.revision().0));
        assert!(found.eq(map.iter().map(|(key, revision)| (key.clone(), *revision))));
        assert_eq!((tree.len(), tree.is_empty()), (map.len(), map.is_empty()));
        assert_eq!(tree.iter().len(), map.len());
        levels
    }

    fn compare_ranges(tree: &CountedTree<Arc<CachedObject>>, map: &BTreeMap<String, u64>, bound: &str) {
        let position = tree.position(|key| key < bound);
        assert_eq!(position, map.keys().filter(|key| key.as_str() < bound).count());
        assert_eq!(tree.get(bound).map(|object| object.revision().0), map.get(bound).copied());
        for to in [position, position + 1, position + 40, map.len()] {
            let found = tree.between(position, to).map(|object| object.key().as_str());
            let expected = map.keys().map(String::as_str).filter(|key| *key >= bound);
            assert!(found.eq(expected.take(to.saturating_sub(position))));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn it_is_like_a_map(
            packed in 0..2000_u16,
            writes in prop::collection::vec((0..1500_u16, prop::bool::weighted(0.5)), 0..3000),
        ) {
            let mut map: BTreeMap<_, _> = (0..packed).map(|number| (key(number), 1)).collect();
            let mut tree: CountedTree<Arc<CachedObject>> = (0..packed).map(|number| object(&key(number), 1)).collect();
            let mut kept = (tree.clone(), map.clone());
            for (revision, (number, is_put)) in (2..).zip(writes) {
                let key = key(number);
                let (replaced, expected) = match is_put {
                    true => (tree.insert(object(&key, revision)), map.insert(key, revision)),
                    false => (tree.remove(&key), map.remove(&key)),
                };
                prop_assert_eq!(replaced.map(|object| object.revision().0), expected);
                if revision % 500 == 0 {
                    compare(&tree, &map);
                    // A clone is not affected by writes to the original.
                    compare(&kept.0, &kept.1);
                    prop_assert!(!kept.0.ptr_eq(&tree));
                    kept = (tree.clone(), map.clone());
                    prop_assert!(kept.0.ptr_eq(&tree));
                }
            }
            compare(&tree, &map);
            for number in [0, 1, 31, 32, 700, 1499, 5000] {
                compare_ranges(&tree, &map, &key(number));
            }
        }
    }

    #[test]
    fn keys_with_one_mark_are_told_apart() {
        let mut marks = HashMap::new();
        let pair = (0..2_000_000).find_map(|number| {
            let key = format!("/p/{number}");
            let other = marks.insert(Mark::of(&key).0, key.clone())?;
            Some([other, key])
        });
        let pair = pair.unwrap();
        let mut tree = CountedTree::<Arc<CachedObject>>::default();
        assert!(tree.insert(object(&pair[0], 1)).is_none());
        assert!(tree.get(&pair[1]).is_none() && tree.remove(&pair[1]).is_none());
        assert!(tree.insert(object(&pair[1], 2)).is_none());
        assert_eq!(pair.each_ref().map(|key| tree.get(key).unwrap().revision().0), [1, 2]);
        assert_eq!(tree.remove(&pair[0]).unwrap().revision().0, 1);
        assert_eq!(tree.iter().map(|object| object.revision().0).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn it_stays_flat_and_full() {
        let mut ascending = CountedTree::<Arc<CachedObject>>::default();
        let mut map = BTreeMap::new();
        for number in 0..20_000 {
            ascending.insert(object(&key(number), 1));
            map.insert(key(number), 1);
        }
        // Leaves of 24, branches of 24: 24 * 24 * 24 < 20,000.
        assert_eq!(compare(&ascending, &map), 4);
        let mut tree: CountedTree<Arc<CachedObject>> = ascending.iter().cloned().collect();
        assert_eq!(compare(&tree, &map), 3);
        // Of each leaf one object remains, and the leaves are joined.
        for number in 0..20_000 {
            if number % 28 != 0 {
                tree.remove(&key(number)).unwrap();
                map.remove(&key(number));
            }
        }
        assert!(compare(&tree, &map) <= 3);
        let leaves = leaves(&tree.root);
        assert!(leaves <= map.len() / (JOINED / 2) + 1, "{leaves} leaves of {} objects", map.len());
        for number in 0..20_000 {
            tree.remove(&key(number));
        }
        assert_eq!(compare(&tree, &BTreeMap::new()), 1);
    }

    fn leaves(node: &Node<Arc<CachedObject>>) -> usize {
        match node {
            Node::Leaf(_) => 1,
            Node::Branch(branch) => branch.children.iter().map(|child| leaves(&child.node)).sum(),
        }
    }

    #[test]
    fn a_removal_of_nothing_copies_nothing() {
        let mut tree: CountedTree<Arc<CachedObject>> =
            (0..100).map(|number| object(&key(number), 1)).collect();
        let kept = tree.clone();
        assert!(tree.remove("/p/none").is_none());
        assert!(tree.ptr_eq(&kept));
    }
}
