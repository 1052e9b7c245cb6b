//! An index of values by the prefixes of keys.
//!
//! The prefixes of a key are found by their order alone, from the longest to the shortest. Of `/r/pods/a`, with values
//! under `/r/`, `/r/nodes/`, `/r/pods/` and `/r/podtemplates/`:
//!
//! ```text
//!   up to "/r/pods/a"       /r/pods/    a prefix: continue before it
//!   before "/r/pods/"       /r/nodes/   not a prefix, "/r/" is common: no longer prefix is left
//!   up to "/r/"             /r/         a prefix
//! ```
//!
//! So a lookup takes a few searches of a tree: one for each prefix, and at most one for each character in which a
//! neighbour differs from the key.

use std::{collections::BTreeMap, ops::Bound};

/// Values by prefix, several for one perhaps. No prefix is without a value.
pub(super) struct PrefixIndex<T>(BTreeMap<Box<[u8]>, Vec<T>>);

impl<T> Default for PrefixIndex<T> {
    fn default() -> Self {
        PrefixIndex(BTreeMap::new())
    }
}

impl<T> PrefixIndex<T> {
    /// Adds a value.
    pub(super) fn insert(&mut self, prefix: &str, value: T) {
        match self.0.get_mut(prefix.as_bytes()) {
            Some(values) => values.push(value),
            None => drop(self.0.insert(prefix.as_bytes().into(), vec![value])),
        }
    }

    /// Removes the values of a prefix that match.
    pub(super) fn remove(&mut self, prefix: &str, matches: impl Fn(&T) -> bool) {
        let Some(values) = self.0.get_mut(prefix.as_bytes()) else { return };
        values.retain(|value| !matches(value));
        if values.is_empty() {
            self.0.remove(prefix.as_bytes());
        }
    }

    /// The prefixes of a key, the longest first, with their values.
    pub(super) fn prefixes_of<'a>(&'a self, key: &'a str) -> impl Iterator<Item = (&'a [u8], &'a [T])> {
        let key = key.as_bytes();
        let mut end = Bound::Included(key);
        std::iter::from_fn(move || {
            loop {
                let (prefix, values) = self.0.range::<[u8], _>((Bound::Unbounded, end)).next_back()?;
                if key.starts_with(prefix) {
                    end = Bound::Excluded(prefix);
                    return Some((&**prefix, &**values));
                }
                // Longer prefixes of the key would be between this neighbour and the key.
                let common = prefix.iter().zip(key).take_while(|(a, b)| a == b).count();
                end = Bound::Included(key.get(..common)?);
            }
        })
    }

    /// All values.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.values().flatten()
    }

    /// Removes all values.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = T> + use<T> {
        std::mem::take(&mut self.0).into_values().flatten()
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_fault_vfs::Random;

    #[test]
    fn the_prefixes_of_a_key_are_found_among_their_neighbours() {
        let mut index = PrefixIndex::default();
        for (at, prefix) in
            ["/r/", "/r/nodes/", "/r/pods/", "/r/podtemplates/", "/r/pods/"].iter().enumerate()
        {
            index.insert(prefix, at);
        }
        let rows: &[(&str, &[usize])] = &[
            ("/r/pods/a", &[2, 4, 0]),
            ("/r/pods/", &[2, 4, 0]),
            ("/r/pods", &[0]),
            ("/r/podtemplates/a", &[3, 0]),
            ("/r/nodes/é", &[1, 0]),
            ("/r/a", &[0]),
            ("/s", &[]),
            ("", &[]),
        ];
        let found = |index: &PrefixIndex<usize>, key: &str| {
            index.prefixes_of(key).flat_map(|(_, values)| values).copied().collect::<Vec<_>>()
        };
        for (key, expected) in rows {
            assert_eq!(found(&index, key), *expected, "{key}");
        }
        index.insert("", 5);
        assert_eq!(found(&index, "/s"), [5]);
        index.remove("/r/pods/", |value| *value == 2);
        assert_eq!(found(&index, "/r/pods/a"), [4, 0, 5]);
        index.remove("/r/pods/", |_| true);
        assert_eq!(found(&index, "/r/pods/a"), [0, 5]);
        assert_eq!(index.drain().count(), 4);
        assert!(index.is_empty());
    }

    #[test]
    fn a_lookup_finds_what_a_comparison_with_every_prefix_finds() {
        let mut random = Random::new(11);
        let mut word = |longest| {
            let length = random.below(longest);
            (0..length).map(|_| ['a', 'b', 'é'][random.below(3) as usize]).collect::<String>()
        };
        for _ in 0..200 {
            let mut index = PrefixIndex::default();
            let mut prefixes: Vec<String> = (0..20).map(|_| word(5)).collect();
            prefixes.sort();
            prefixes.dedup();
            for prefix in &prefixes {
                index.insert(prefix, prefix.clone());
            }
            for _ in 0..20 {
                let key = word(8);
                let mut expected: Vec<&String> =
                    prefixes.iter().filter(|prefix| key.starts_with(prefix.as_str())).collect();
                expected.reverse();
                let found: Vec<&String> = index.prefixes_of(&key).flat_map(|(_, values)| values).collect();
                assert_eq!(found, expected, "{key} of {prefixes:?}");
            }
        }
    }
}
