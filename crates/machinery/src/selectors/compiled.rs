//! Combines the requirements of a label selector by key.
//!
//! A client may send as many requirements as a URL holds, and each is evaluated on every object. Requirements on the
//! same key are combined once, so that an object costs one lookup for each key, or for each of its own labels.

use super::label_requirement::{LabelOperator, LabelRequirement};

/// Requirements by key.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CompiledRequirements {
    /// Sorted by key.
    keys: Vec<KeyRequirement>,
    /// The number of keys whose requirements an object without labels does not meet.
    present: usize,
}

/// All requirements on one label.
#[derive(Debug, PartialEq, Eq, Default)]
struct KeyRequirement {
    key: String,
    must_be_present: bool,
    must_be_absent: bool,
    /// Sorted.
    allowed: Option<Vec<String>>,
    /// Sorted.
    excluded: Vec<String>,
    above: Option<i64>,
    below: Option<i64>,
}

impl CompiledRequirements {
    /// Combines requirements, which must be sorted by key.
    pub(super) fn new(requirements: &[LabelRequirement]) -> CompiledRequirements {
        let mut keys: Vec<KeyRequirement> = Vec::new();
        for requirement in requirements {
            if keys.last().is_none_or(|last| last.key != requirement.key()) {
                keys.push(KeyRequirement { key: requirement.key().to_owned(), ..KeyRequirement::default() });
            }
            if let Some(last) = keys.last_mut() {
                last.add(requirement);
            }
        }
        for key in &mut keys {
            key.excluded.sort_unstable();
            key.excluded.dedup();
        }
        let present = keys.iter().filter(|key| key.must_be_present).count();
        CompiledRequirements { keys, present }
    }

    /// Evaluates every key.
    pub(super) fn matches_each<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.keys.iter().all(|key| key.matches(label(&key.key)))
    }

    /// Evaluates every key, or every label when these are fewer.
    pub(super) fn matches<'a>(
        &self,
        mut labels: impl ExactSizeIterator<Item = (&'a str, &'a str)>,
        label: impl Fn(&str) -> Option<&'a str>,
    ) -> bool {
        if self.keys.len() <= labels.len() {
            return self.matches_each(label);
        }
        if self.present > labels.len() {
            return false;
        }
        let mut present = 0;
        let all = labels.all(|(name, value)| {
            let Ok(at) = self.keys.binary_search_by(|key| key.key.as_str().cmp(name)) else { return true };
            let Some(key) = self.keys.get(at) else { return true };
            present += usize::from(key.must_be_present);
            key.matches(Some(value))
        });
        all && present == self.present
    }
}

impl KeyRequirement {
    fn add(&mut self, requirement: &LabelRequirement) {
        let values = requirement.values();
        match requirement.operator() {
            LabelOperator::In | LabelOperator::Equals | LabelOperator::DoubleEquals => {
                self.must_be_present = true;
                match &mut self.allowed {
                    Some(allowed) => allowed.retain(|value| values.binary_search(value).is_ok()),
                    None => self.allowed = Some(values.to_vec()),
                }
            }
            LabelOperator::NotIn | LabelOperator::NotEquals => self.excluded.extend_from_slice(values),
            LabelOperator::Exists => self.must_be_present = true,
            LabelOperator::DoesNotExist => self.must_be_absent = true,
            LabelOperator::GreaterThan => {
                self.must_be_present = true;
                self.above = self.above.max(Some(requirement.bound()));
            }
            LabelOperator::LessThan => {
                self.must_be_present = true;
                let bound = requirement.bound();
                self.below = Some(self.below.map_or(bound, |below| below.min(bound)));
            }
        }
    }

    fn matches(&self, value: Option<&str>) -> bool {
        let Some(value) = value else { return !self.must_be_present };
        let is_in = |values: &[String]| values.binary_search_by(|own| own.as_str().cmp(value)).is_ok();
        let number = || value.parse::<i64>().ok();
        !self.must_be_absent
            && self.allowed.as_deref().is_none_or(is_in)
            && !is_in(&self.excluded)
            && self.above.is_none_or(|above| number().is_some_and(|number| number > above))
            && self.below.is_none_or(|below| number().is_some_and(|number| number < below))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selectors::LabelSelector;

    /// Compiled selectors give the same results as their single requirements.
    #[test]
    fn many_requirements_are_those_one_by_one() {
        let parts = [
            "a",
            "!a",
            "a=1",
            "a!=1",
            "a in (1,2,3)",
            "a in (2,3,4)",
            "a notin (3)",
            "a>1",
            "a<3",
            "b",
            "!b",
            "b=x",
            "b!=x",
            "c notin (x,y)",
            "!d",
            "e!=1",
            "f!=1",
            "g!=1",
        ];
        let sets: [&[(&str, &str)]; 8] = [
            &[],
            &[("a", "1")],
            &[("a", "2")],
            &[("a", "2"), ("b", "x")],
            &[("b", "y"), ("c", "z")],
            &[("a", "2"), ("b", "y"), ("c", "z"), ("d", "1")],
            &[("a", "x"), ("e", "2")],
            &[
                ("a", "2"),
                ("b", "x"),
                ("c", "z"),
                ("h", ""),
                ("i", ""),
                ("j", ""),
                ("k", ""),
                ("l", ""),
                ("m", ""),
            ],
        ];
        let mut selected = 0;
        for pattern in 0_u32..1 << parts.len() {
            // All pairs and triples of parts, and a sample of the larger sets.
            if pattern.count_ones() > 3 && pattern % 251 != 0 {
                continue;
            }
            let chosen = parts.iter().enumerate().filter(|(at, _)| pattern >> at & 1 == 1);
            let text = chosen.map(|(_, part)| *part).collect::<Vec<_>>().join(",");
            let selector = LabelSelector::parse(&text).unwrap();
            let compiled = CompiledRequirements::new(selector.requirements());
            for set in sets {
                let label = |key: &str| set.iter().find(|(own, _)| *own == key).map(|(_, value)| *value);
                let expected = selector
                    .requirements()
                    .iter()
                    .all(|requirement| requirement.matches(label(requirement.key())));
                assert_eq!(compiled.matches(set.iter().copied(), label), expected, "{text} {set:?}");
                assert_eq!(compiled.matches_each(label), expected, "{text} {set:?}");
                assert_eq!(selector.matches_all(set.iter().copied(), label), expected, "{text} {set:?}");
                selected += usize::from(expected);
            }
        }
        assert!(selected > 100, "{selected}");
    }
}
