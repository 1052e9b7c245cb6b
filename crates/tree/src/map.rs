//! The members of an object.

use std::collections::{BTreeMap, btree_map};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::{slice, vec};

use crate::text::Text;

/// The most members that are kept in a slice. An insertion into it moves 64 bytes for each member behind.
const IN_SLICE: usize = 32;

/// The members of an object, sorted by the bytes of their names, which are unique.
///
/// Few members are a slice: one allocation, searched from its start by one word of each name. More than 32 are a B-tree,
/// and stay one until the map is cleared.
#[derive(Clone)]
pub struct Map<V>(Members<V>);

#[derive(Clone)]
#[expect(clippy::box_collection, reason = "without the box, a value would take 40 bytes and not 32")]
enum Members<V> {
    Slice(Vec<Member<V>>),
    Tree(Box<BTreeMap<Text, V>>),
}

/// A member in a slice.
#[derive(Debug, Clone)]
struct Member<V> {
    word: Word,
    name: Text,
    value: V,
}

impl<V> Member<V> {
    fn new(name: Text, value: V) -> Member<V> {
        Member { word: Word::of(&name), name, value }
    }

    /// Whether it has a name, whose word is given.
    fn is(&self, word: Word, name: &str) -> bool {
        self.word == word && (word.is_whole() || self.name == name)
    }
}

impl<V> Default for Map<V> {
    fn default() -> Map<V> {
        Map::new()
    }
}

impl<V> Map<V> {
    /// An object without members. Does not allocate.
    pub const fn new() -> Map<V> {
        Map(Members::Slice(Vec::new()))
    }

    /// An object without members that takes `capacity` of them, when they are few, without allocating again.
    pub fn with_capacity(capacity: usize) -> Map<V> {
        Map(Members::Slice(Vec::with_capacity(capacity.min(IN_SLICE))))
    }

    /// The number of members.
    pub fn len(&self) -> usize {
        match &self.0 {
            Members::Slice(members) => members.len(),
            Members::Tree(members) => members.len(),
        }
    }

    /// Whether there are no members.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of a member.
    pub fn get(&self, name: &str) -> Option<&V> {
        match &self.0 {
            Members::Slice(members) => {
                let word = Word::of(name);
                members.iter().find(|member| member.is(word, name)).map(|member| &member.value)
            }
            Members::Tree(members) => in_tree(members, name),
        }
    }

    /// The value of a member, mutable.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut V> {
        match &mut self.0 {
            Members::Slice(members) => {
                let word = Word::of(name);
                members.iter_mut().find(|member| member.is(word, name)).map(|member| &mut member.value)
            }
            Members::Tree(members) => members.get_mut(name),
        }
    }

    /// Whether there is a member of this name.
    pub fn contains_key(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Sets a member and returns the value that it had.
    pub fn insert(&mut self, name: impl Into<Text>, value: V) -> Option<V> {
        let name = name.into();
        let members = match &mut self.0 {
            Members::Slice(members) => members,
            Members::Tree(members) => return members.insert(name, value),
        };
        let new = Member::new(name, value);
        match position(members, &new) {
            Ok(at) => members.get_mut(at).map(|member| std::mem::replace(&mut member.value, new.value)),
            Err(at) if members.len() < IN_SLICE => {
                members.insert(at, new);
                None
            }
            Err(_) => self.grow().insert(new.name, new.value),
        }
    }

    /// Removes a member and returns its value.
    pub fn remove(&mut self, name: &str) -> Option<V> {
        match &mut self.0 {
            Members::Slice(members) => {
                let word = Word::of(name);
                let at = members.iter().position(|member| member.is(word, name))?;
                Some(members.remove(at).value)
            }
            Members::Tree(members) => members.remove(name),
        }
    }

    /// The place of a member, to be read or filled.
    pub fn entry(&mut self, name: impl Into<Text>) -> Entry<'_, V> {
        Entry { map: self, name: name.into() }
    }

    /// Removes the members for which `keep` is false.
    pub fn retain(&mut self, mut keep: impl FnMut(&Text, &mut V) -> bool) {
        match &mut self.0 {
            Members::Slice(members) => members.retain_mut(|member| keep(&member.name, &mut member.value)),
            Members::Tree(members) => members.retain(keep),
        }
    }

    /// Removes all members.
    pub fn clear(&mut self) {
        match &mut self.0 {
            Members::Slice(members) => members.clear(),
            Members::Tree(_) => *self = Map::new(),
        }
    }

    /// The members, sorted by name.
    pub fn iter(&self) -> Iter<'_, V> {
        match &self.0 {
            Members::Slice(members) => Iter(Either::Slice(members.iter())),
            Members::Tree(members) => Iter(Either::Tree(members.iter())),
        }
    }

    /// The members, sorted by name, with mutable values.
    pub fn iter_mut(&mut self) -> IterMut<'_, V> {
        match &mut self.0 {
            Members::Slice(members) => IterMut(Either::Slice(members.iter_mut())),
            Members::Tree(members) => IterMut(Either::Tree(members.iter_mut())),
        }
    }

    /// The names, sorted.
    pub fn keys(&self) -> Keys<'_, V> {
        Keys(self.iter())
    }

    /// The values, sorted by name.
    pub fn values(&self) -> Values<'_, V> {
        Values(self.iter())
    }

    /// The values, mutable, sorted by name.
    pub fn values_mut(&mut self) -> ValuesMut<'_, V> {
        ValuesMut(self.iter_mut())
    }

    /// Turns the slice into a tree.
    fn grow(&mut self) -> &mut BTreeMap<Text, V> {
        if let Members::Slice(members) = &mut self.0 {
            let members = std::mem::take(members).into_iter().map(|member| (member.name, member.value));
            self.0 = Members::Tree(Box::new(members.collect()));
        }
        match &mut self.0 {
            Members::Tree(members) => members,
            Members::Slice(_) => unreachable!("the members were made a tree above"),
        }
    }
}

/// Looks a member up in a tree. It is not inlined, so that [`Map::get`] stays small for the slices that most objects are.
#[cold]
fn in_tree<'a, V>(members: &'a BTreeMap<Text, V>, name: &str) -> Option<&'a V> {
    members.get(name)
}

/// The position of a member, or where it belongs. Members mostly come in their order, so the end is tried first.
fn position<V>(members: &[Member<V>], new: &Member<V>) -> Result<usize, usize> {
    let compare = |member: &Member<V>| {
        member.word.start().cmp(&new.word.start()).then_with(|| member.name.cmp(&new.name))
    };
    match members.last() {
        Some(last) if compare(last).is_ge() => members.binary_search_by(compare),
        _ => Err(members.len()),
    }
}

/// The first seven bytes of a name and its length (255 for all longer names) in one word. Names with different words
/// differ; names with the same word are equal if they have no further bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Word(u64);

impl Word {
    /// The word of a name.
    #[inline]
    fn of(name: &str) -> Word {
        let name = name.as_bytes();
        let start = match (name, name.first_chunk(), name.first_chunk(), name.last_chunk()) {
            (_, Some(&start), _, _) => u64::from_be_bytes(start),
            // The bytes that both halves have are the same.
            (_, _, Some(&start), Some(&end)) => {
                u64::from(u32::from_be_bytes(start)) << 32
                    | u64::from(u32::from_be_bytes(end)) << (64 - 8 * name.len())
            }
            ([a, b, c], ..) => u64::from_be_bytes([*a, *b, *c, 0, 0, 0, 0, 0]),
            ([a, b], ..) => u64::from_be_bytes([*a, *b, 0, 0, 0, 0, 0, 0]),
            ([a], ..) => u64::from(*a) << 56,
            _ => 0,
        };
        Word(start & !0xff | name.len().min(0xff) as u64)
    }

    /// The first seven bytes, which order names as their bytes do where they differ.
    fn start(self) -> u64 {
        self.0 >> 8
    }

    /// Whether the name has no more bytes than these.
    fn is_whole(self) -> bool {
        self.0 & 0xff <= 7
    }
}

/// The place of a member in a map, from [`Map::entry`].
#[derive(Debug)]
pub struct Entry<'a, V> {
    map: &'a mut Map<V>,
    name: Text,
}

impl<'a, V> Entry<'a, V> {
    /// The value of the member, set to `value` when it is absent.
    pub fn or_insert(self, value: impl Into<V>) -> &'a mut V {
        self.or_insert_with(|| value.into())
    }

    /// The value of the member, made when it is absent.
    pub fn or_insert_with(self, make: impl FnOnce() -> V) -> &'a mut V {
        let Entry { map, name } = self;
        if !map.contains_key(&name) {
            map.insert(name.clone(), make());
        }
        match map.get_mut(&name) {
            Some(value) => value,
            None => unreachable!("the member was inserted above"),
        }
    }

    /// Changes the value of the member when there is one.
    #[must_use]
    pub fn and_modify(self, change: impl FnOnce(&mut V)) -> Entry<'a, V> {
        if let Some(value) = self.map.get_mut(&self.name) {
            change(value);
        }
        self
    }
}

impl<V: PartialEq> PartialEq for Map<V> {
    fn eq(&self, other: &Map<V>) -> bool {
        self.len() == other.len() && self.iter().eq(other)
    }
}

impl<V: Eq> Eq for Map<V> {}

impl<V: Hash> Hash for Map<V> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_usize(self.len());
        self.iter().for_each(|member| member.hash(state));
    }
}

impl<V: fmt::Debug> fmt::Debug for Map<V> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_map().entries(self).finish()
    }
}

impl<K: Into<Text>, V> Extend<(K, V)> for Map<V> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, members: I) {
        for (name, value) in members {
            self.insert(name, value);
        }
    }
}

impl<K: Into<Text>, V> FromIterator<(K, V)> for Map<V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(members: I) -> Map<V> {
        let members = members.into_iter();
        let mut map = Map::with_capacity(members.size_hint().0);
        map.extend(members);
        map
    }
}

/// One of the two representations of the members.
#[derive(Debug, Clone)]
enum Either<S, T> {
    Slice(S),
    Tree(T),
}

/// The members of a map, sorted by name.
#[derive(Debug, Clone)]
pub struct Iter<'a, V>(Either<slice::Iter<'a, Member<V>>, btree_map::Iter<'a, Text, V>>);

/// The members of a map, sorted by name, with mutable values.
#[derive(Debug)]
pub struct IterMut<'a, V>(Either<slice::IterMut<'a, Member<V>>, btree_map::IterMut<'a, Text, V>>);

/// The members of a map by value, sorted by name.
#[derive(Debug)]
pub struct IntoIter<V>(Either<vec::IntoIter<Member<V>>, btree_map::IntoIter<Text, V>>);

/// The names of a map, sorted.
#[derive(Debug, Clone)]
pub struct Keys<'a, V>(Iter<'a, V>);

/// The values of a map, sorted by name.
#[derive(Debug, Clone)]
pub struct Values<'a, V>(Iter<'a, V>);

/// The values of a map, mutable, sorted by name.
#[derive(Debug)]
pub struct ValuesMut<'a, V>(IterMut<'a, V>);

impl<'a, V> Iterator for Iter<'a, V> {
    type Item = (&'a Text, &'a V);

    fn next(&mut self) -> Option<(&'a Text, &'a V)> {
        match &mut self.0 {
            Either::Slice(members) => members.next().map(|member| (&member.name, &member.value)),
            Either::Tree(members) => members.next(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match &self.0 {
            Either::Slice(members) => members.size_hint(),
            Either::Tree(members) => members.size_hint(),
        }
    }
}

impl<'a, V> Iterator for IterMut<'a, V> {
    type Item = (&'a Text, &'a mut V);

    fn next(&mut self) -> Option<(&'a Text, &'a mut V)> {
        match &mut self.0 {
            Either::Slice(members) => members.next().map(|member| (&member.name, &mut member.value)),
            Either::Tree(members) => members.next(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match &self.0 {
            Either::Slice(members) => members.size_hint(),
            Either::Tree(members) => members.size_hint(),
        }
    }
}

impl<V> Iterator for IntoIter<V> {
    type Item = (Text, V);

    fn next(&mut self) -> Option<(Text, V)> {
        match &mut self.0 {
            Either::Slice(members) => members.next().map(|member| (member.name, member.value)),
            Either::Tree(members) => members.next(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match &self.0 {
            Either::Slice(members) => members.size_hint(),
            Either::Tree(members) => members.size_hint(),
        }
    }
}

impl<'a, V> Iterator for Keys<'a, V> {
    type Item = &'a Text;

    fn next(&mut self) -> Option<&'a Text> {
        self.0.next().map(|(name, _)| name)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl<'a, V> Iterator for Values<'a, V> {
    type Item = &'a V;

    fn next(&mut self) -> Option<&'a V> {
        self.0.next().map(|(_, value)| value)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl<'a, V> Iterator for ValuesMut<'a, V> {
    type Item = &'a mut V;

    fn next(&mut self) -> Option<&'a mut V> {
        self.0.next().map(|(_, value)| value)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl<V> ExactSizeIterator for Iter<'_, V> {}
impl<V> ExactSizeIterator for IterMut<'_, V> {}
impl<V> ExactSizeIterator for IntoIter<V> {}
impl<V> ExactSizeIterator for Keys<'_, V> {}
impl<V> ExactSizeIterator for Values<'_, V> {}
impl<V> ExactSizeIterator for ValuesMut<'_, V> {}

impl<'a, V> IntoIterator for &'a Map<V> {
    type Item = (&'a Text, &'a V);
    type IntoIter = Iter<'a, V>;

    fn into_iter(self) -> Iter<'a, V> {
        self.iter()
    }
}

impl<'a, V> IntoIterator for &'a mut Map<V> {
    type Item = (&'a Text, &'a mut V);
    type IntoIter = IterMut<'a, V>;

    fn into_iter(self) -> IterMut<'a, V> {
        self.iter_mut()
    }
}

impl<V> IntoIterator for Map<V> {
    type Item = (Text, V);
    type IntoIter = IntoIter<V>;

    fn into_iter(self) -> IntoIter<V> {
        IntoIter(match self.0 {
            Members::Slice(members) => Either::Slice(members.into_iter()),
            Members::Tree(members) => Either::Tree(members.into_iter()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Value;
    use proptest::prelude::*;

    /// An operation on a map.
    #[derive(Debug, Clone)]
    enum Step {
        Insert(String, i64),
        Remove(String),
        Entry(String, i64),
        Retain(i64),
        Clear,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let name = || prop_oneof![3 => "[a-e]{0,2}", 3 => "[a\0]{3,9}", 1 => "[ab]{20,30}"];
        let step = prop_oneof![
            12 => (name(), 0..9i64).prop_map(|(name, value)| Step::Insert(name, value)),
            4 => name().prop_map(Step::Remove),
            4 => (name(), 0..9i64).prop_map(|(name, value)| Step::Entry(name, value)),
            1 => (0..9i64).prop_map(Step::Retain),
            1 => Just(Step::Clear),
        ];
        proptest::collection::vec(step, 0..200)
    }

    proptest! {
        #[test]
        fn a_map_is_a_sorted_map(steps in steps()) {
            let (mut map, mut model) = (Map::<Value>::new(), BTreeMap::new());
            for step in steps {
                match step {
                    Step::Insert(name, value) => {
                        prop_assert_eq!(map.insert(name.as_str(), value.into()), model.insert(name, value).map(Value::from));
                    }
                    Step::Remove(name) => prop_assert_eq!(map.remove(&name), model.remove(&name).map(Value::from)),
                    Step::Entry(name, value) => {
                        let held = map.entry(name.as_str()).and_modify(|held| *held = 7.into()).or_insert(value);
                        let expected = model.entry(name).and_modify(|held| *held = 7).or_insert(value);
                        prop_assert_eq!(&*held, &*expected);
                    }
                    Step::Retain(least) => {
                        map.retain(|_, value| value.as_i64() >= Some(least));
                        model.retain(|_, value| *value >= least);
                    }
                    Step::Clear => {
                        map.clear();
                        model.clear();
                    }
                }
                prop_assert_eq!(map.len(), model.len());
                let held = map.iter().map(|(name, value)| (name.to_string(), value.as_i64().unwrap_or(-1)));
                prop_assert_eq!(held.collect::<Vec<_>>(), model.clone().into_iter().collect::<Vec<_>>());
                prop_assert!(model.keys().all(|name| map.contains_key(name)));
            }
            let members: Vec<_> = map.clone().into_iter().collect();
            prop_assert_eq!(map, members.into_iter().rev().collect::<Map<Value>>());
        }
    }

    #[test]
    fn a_member_takes_64_bytes_in_place() {
        assert_eq!((size_of::<Value>(), size_of::<Member<Value>>()), (32, 64));
    }

    #[test]
    fn many_members_are_a_tree() {
        let map: Map<Value> = (0..100_000).rev().map(|number| (number.to_string(), Value::Null)).collect();
        assert!(matches!(map.0, Members::Tree(_)));
        assert_eq!(map.len(), 100_000);
    }
}
