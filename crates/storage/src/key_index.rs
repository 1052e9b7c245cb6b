//! Indexes the revisions of every key: the part of the history that conflict checks, lists and compaction need.
//!
//! A key that was created at 2, updated at 5, deleted at 7 and created again at 9 is
//!
//! ```text
//! /registry/pods/default/web-0 -> (mod 2, create 2) (mod 5, create 2) (mod 7, tombstone) (mod 9, create 9)
//! ```
//!
//! and its value at revision 6 is in the row of revision 5. Compacting at 6 drops revision 2, compacting at 7 all but
//! 9. Values are stored separately, in rows keyed by revision, so the index stays small: about 60 bytes and the key's
//! text for an object that was not changed since the last compaction.
//!
//! Invariant: versions of a key have ascending revisions, and every key in the map has at least one version.

use crate::{Key, Revision};
use std::{collections::BTreeMap, ops::Bound};

/// The number of keys that a running engine compacts before it lets others have the lock of the index: they are not held
/// up for a millisecond. Tests of the engines, with few keys, compact several slices too.
pub(crate) const COMPACTED_KEYS: usize = if cfg!(test) { 3 } else { 2048 };

/// One write to a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Version {
    pub(crate) mod_revision: Revision,
    /// Zero in a tombstone.
    create_revision: Revision,
}

impl Version {
    pub(crate) fn live(mod_revision: Revision, create_revision: Revision) -> Version {
        Version { mod_revision, create_revision }
    }

    pub(crate) fn tombstone(mod_revision: Revision) -> Version {
        Version { mod_revision, create_revision: Revision(0) }
    }

    pub(crate) fn is_tombstone(self) -> bool {
        self.create_revision == Revision(0)
    }

    /// The revision that created the key, or `None` in a tombstone.
    pub(crate) fn create_revision(self) -> Option<Revision> {
        (!self.is_tombstone()).then_some(self.create_revision)
    }
}

#[derive(Debug)]
struct KeyHistory {
    newest: Version,
    /// Ascending; empty (and not allocated) for a key that was written once.
    older: Vec<Version>,
}

impl KeyHistory {
    fn at(&self, revision: Revision) -> Option<Version> {
        if self.newest.mod_revision <= revision {
            return Some(self.newest);
        }
        let count = self.older.partition_point(|version| version.mod_revision <= revision);
        self.older.get(count.checked_sub(1)?).copied()
    }

    /// Drops the versions that no read at or after `revision` can see, and adds their revisions to `forgotten`. Returns
    /// whether any version is left.
    fn compact(&mut self, revision: Revision, forgotten: &mut Vec<Revision>) -> bool {
        if self.newest.mod_revision <= revision {
            forgotten.extend(self.older.drain(..).map(|version| version.mod_revision));
            self.older = Vec::new();
            if self.newest.is_tombstone() {
                forgotten.push(self.newest.mod_revision);
                return false;
            }
            return true;
        }
        let seen = self.older.partition_point(|version| version.mod_revision <= revision);
        // The last version at or before the compaction is the visible one, unless it is a tombstone.
        let visible = seen.checked_sub(1).and_then(|last| self.older.get(last).copied());
        let gone = match visible {
            Some(version) if version.is_tombstone() => seen,
            _ => seen.saturating_sub(1),
        };
        forgotten.extend(self.older.drain(..gone).map(|version| version.mod_revision));
        self.older.shrink_to_fit();
        true
    }
}

/// The keys of a range at some revision.
#[derive(Debug, Default)]
pub(crate) struct Range {
    pub(crate) versions: Vec<(Key, Version)>,
    /// Whether live keys remain after the last one.
    pub(crate) more: bool,
}

#[derive(Debug, Default)]
pub(crate) struct KeyIndex {
    keys: BTreeMap<Key, KeyHistory>,
}

impl KeyIndex {
    /// The latest version of a key, if the key exists.
    pub(crate) fn current(&self, key: &Key) -> Option<Version> {
        self.keys.get(key).map(|history| history.newest).filter(|version| !version.is_tombstone())
    }

    /// Adds the latest write to a key; `version` must be newer than its other versions.
    pub(crate) fn insert(&mut self, key: &Key, version: Version) {
        if let Some(history) = self.keys.get_mut(key) {
            debug_assert!(history.newest.mod_revision < version.mod_revision, "revisions of {key} ascend");
            history.older.push(history.newest);
            history.newest = version;
        } else {
            self.keys.insert(key.clone(), KeyHistory { newest: version, older: Vec::new() });
        }
    }

    /// The live keys of a prefix at `revision`, in order, at most `limit` unless `limit` is zero.
    pub(crate) fn range(
        &self,
        prefix: &str,
        start_after: Option<&Key>,
        limit: usize,
        revision: Revision,
    ) -> Range {
        let mut live = self
            .histories(prefix, start_after)
            .filter_map(|(key, history)| Some((key, history.at(revision)?)))
            .filter(|(_, version)| !version.is_tombstone());
        let wanted = if limit == 0 { usize::MAX } else { limit };
        let versions: Vec<_> =
            live.by_ref().take(wanted).map(|(key, version)| (key.clone(), version)).collect();
        Range { versions, more: limit != 0 && live.next().is_some() }
    }

    /// The number of live keys of a prefix at `revision` among the first `steps` keys after `start_after`, and the last
    /// of these keys if more follow.
    pub(crate) fn count(
        &self,
        prefix: &str,
        start_after: Option<&Key>,
        steps: usize,
        revision: Revision,
    ) -> (usize, Option<Key>) {
        let mut keys = self.histories(prefix, start_after);
        let mut count = 0;
        let mut last = None;
        for (key, history) in keys.by_ref().take(steps) {
            count += usize::from(history.at(revision).is_some_and(|version| !version.is_tombstone()));
            last = Some(key);
        }
        let last = last.cloned();
        (count, last.filter(|_| keys.next().is_some()))
    }

    fn histories(
        &self,
        prefix: &str,
        start_after: Option<&Key>,
    ) -> impl Iterator<Item = (&Key, &KeyHistory)> {
        let start = match start_after {
            Some(key) if key.as_str() >= prefix => Bound::Excluded(key.as_str()),
            _ => Bound::Included(prefix),
        };
        let keys = self.keys.range::<str, _>((start, Bound::Unbounded));
        keys.take_while(move |(key, _)| key.as_str().starts_with(prefix))
    }

    /// Drops the versions that no read at or after `revision` can see, and returns their revisions, key by key.
    pub(crate) fn compact(&mut self, revision: Revision) -> Vec<Revision> {
        let mut forgotten = Vec::new();
        self.keys.retain(|_, history| history.compact(revision, &mut forgotten));
        forgotten
    }

    /// As [`KeyIndex::compact`], for a slice of `keys` keys that begins at `start`. Adds the revisions to `forgotten`, and
    /// returns the start of the next slice. Keys may be written between the slices: their new versions are after
    /// `revision`, and stay.
    pub(crate) fn compact_slice(
        &mut self,
        revision: Revision,
        start: Option<&Key>,
        keys: usize,
        forgotten: &mut Vec<Revision>,
    ) -> Option<Key> {
        let from = start.map_or(Bound::Unbounded, Bound::Included);
        let next = self.keys.range::<Key, _>((from, Bound::Unbounded)).nth(keys).map(|(key, _)| key.clone());
        let slice = (from, next.as_ref().map_or(Bound::Unbounded, Bound::Excluded));
        let mut gone = Vec::new();
        for (key, history) in self.keys.range_mut::<Key, _>(slice) {
            if !history.compact(revision, forgotten) {
                gone.push(key.clone());
            }
        }
        for key in gone {
            self.keys.remove(&key);
        }
        next
    }

    /// The number of keys that exist or have history.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The key of the module's example, and a second key that never changes.
    fn example() -> KeyIndex {
        let mut index = KeyIndex::default();
        for (key, version) in [
            ("/a/1", Version::live(Revision(2), Revision(2))),
            ("/a/2", Version::live(Revision(3), Revision(3))),
            ("/a/1", Version::live(Revision(5), Revision(2))),
            ("/a/1", Version::tombstone(Revision(7))),
            ("/a/1", Version::live(Revision(9), Revision(9))),
        ] {
            index.insert(&Key::new(key), version);
        }
        index
    }

    fn seen(index: &KeyIndex, revision: u64) -> Vec<(String, u64)> {
        let range = index.range("/a/", None, 0, Revision(revision));
        range.versions.iter().map(|(key, version)| (key.to_string(), version.mod_revision.0)).collect()
    }

    #[test]
    fn range_shows_the_state_at_a_revision() {
        let rows: &[(u64, &[(&str, u64)])] = &[
            (1, &[]),
            (2, &[("/a/1", 2)]),
            (4, &[("/a/1", 2), ("/a/2", 3)]),
            (6, &[("/a/1", 5), ("/a/2", 3)]),
            (7, &[("/a/2", 3)]),
            (9, &[("/a/1", 9), ("/a/2", 3)]),
        ];
        for (revision, expected) in rows {
            let expected: Vec<_> = expected.iter().map(|(key, at)| (key.to_string(), *at)).collect();
            assert_eq!(seen(&example(), *revision), expected, "at {revision}");
        }
    }

    #[test]
    fn count_goes_on_after_some_keys() {
        for revision in 1..=9 {
            for steps in 1..=3 {
                let index = example();
                let (mut count, mut last) = index.count("/a/", None, steps, Revision(revision));
                while let Some(after) = last {
                    let rest = index.count("/a/", Some(&after), steps, Revision(revision));
                    count += rest.0;
                    last = rest.1;
                }
                assert_eq!(count, seen(&index, revision).len(), "at {revision}, {steps} at a time");
            }
        }
    }

    #[test]
    fn compact_forgets_what_no_later_read_sees() {
        let rows: &[(u64, &[u64])] =
            &[(2, &[]), (4, &[]), (5, &[2]), (6, &[2]), (7, &[2, 5, 7]), (8, &[2, 5, 7]), (9, &[2, 5, 7])];
        for (revision, expected) in rows {
            let mut index = example();
            let forgotten: Vec<u64> = index.compact(Revision(*revision)).iter().map(|r| r.0).collect();
            assert_eq!(forgotten, *expected, "at {revision}");
            for later in *revision..=10 {
                assert_eq!(seen(&index, later), seen(&example(), later), "at {later} after {revision}");
            }
        }
    }

    #[test]
    fn compaction_in_slices_forgets_the_same_although_keys_are_written_in_between() {
        let filled = || {
            let mut index = KeyIndex::default();
            for revision in 1..200_u64 {
                let (key, version) = (Key::new(format!("/a/{}", revision * 7 % 31)), Revision(revision));
                let version = match (index.current(&key), revision % 3) {
                    (Some(_), 0) => Version::tombstone(version),
                    (Some(current), _) => Version::live(version, current.create_revision),
                    (None, _) => Version::live(version, version),
                };
                index.insert(&key, version);
            }
            index
        };
        let later =
            [("/a/0", 300), ("/a/10", 301), ("/a/2", 302), ("/a/0", 303), ("/a/9x", 304), ("/a/", 305)];
        for revision in [0, 1, 50, 150, 199, 250].map(Revision) {
            let mut whole = filled();
            let mut expected = whole.compact(revision);
            expected.sort_unstable();
            for (key, at) in later {
                whole.insert(&Key::new(key), Version::live(Revision(at), Revision(at)));
            }
            for keys in [1, 2, 5, 30, 31, 1000] {
                let mut index = filled();
                let (mut forgotten, mut start, mut slices) = (Vec::new(), None, 0);
                let mut writes = later.iter();
                loop {
                    start = index.compact_slice(revision, start.as_ref(), keys, &mut forgotten);
                    slices += 1;
                    if let Some((key, at)) = writes.next() {
                        index.insert(&Key::new(*key), Version::live(Revision(*at), Revision(*at)));
                    }
                    if start.is_none() {
                        break;
                    }
                }
                for (key, at) in writes {
                    index.insert(&Key::new(*key), Version::live(Revision(*at), Revision(*at)));
                }
                forgotten.sort_unstable();
                assert_eq!(forgotten, expected, "at {revision}, {keys} keys at a time");
                assert!(slices >= 31 / keys, "{slices} slices of {keys} keys");
                for at in revision.0..310 {
                    assert_eq!(seen(&index, at), seen(&whole, at), "{at} after {revision}, {keys} at a time");
                }
                assert_eq!(index.len(), whole.len());
            }
        }
    }

    #[test]
    fn compact_drops_the_key_of_a_tombstone() {
        let mut index = KeyIndex::default();
        index.insert(&Key::new("/a/1"), Version::live(Revision(2), Revision(2)));
        index.insert(&Key::new("/a/1"), Version::tombstone(Revision(3)));
        assert_eq!(index.compact(Revision(2)), []);
        assert_eq!(index.compact(Revision(3)), [Revision(2), Revision(3)]);
        assert_eq!(index.len(), 0);
    }
}
