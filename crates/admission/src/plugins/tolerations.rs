//! Tolerations of pods, as values that can be compared
//! (<https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/>).

use pintle_machinery::{Map, Value, ValueExt};
use std::collections::{HashMap, HashSet, hash_map::Entry};

/// A toleration.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct Toleration {
    pub(super) key: String,
    pub(super) operator: String,
    pub(super) value: String,
    pub(super) effect: String,
    pub(super) seconds: Option<i64>,
}

impl Toleration {
    pub(super) fn of(value: &Value) -> Toleration {
        Toleration {
            key: value.str_at("key").to_owned(),
            operator: value.str_at("operator").to_owned(),
            value: value.str_at("value").to_owned(),
            effect: value.str_at("effect").to_owned(),
            seconds: value.i64_at("tolerationSeconds"),
        }
    }

    /// Tolerates all taints with this key and effect.
    pub(super) fn exists(key: &str, effect: &str) -> Toleration {
        Toleration {
            key: key.to_owned(),
            operator: "Exists".to_owned(),
            effect: effect.to_owned(),
            ..Toleration::default()
        }
    }

    pub(super) fn to_value(&self) -> Value {
        let mut fields = Map::new();
        for (name, text) in [
            ("key", &self.key),
            ("operator", &self.operator),
            ("value", &self.value),
            ("effect", &self.effect),
        ] {
            if !text.is_empty() {
                fields.insert(name, text.as_str().into());
            }
        }
        if let Some(seconds) = self.seconds {
            fields.insert("tolerationSeconds", seconds.into());
        }
        Value::Object(fields)
    }

    /// Whether both have the same key, operator, value and effect.
    pub(super) fn matches(&self, other: &Toleration) -> bool {
        *self == Toleration { seconds: self.seconds, ..other.clone() }
    }

    fn tolerates_any_key(&self) -> bool {
        self.key.is_empty() && self.operator == "Exists"
    }

    /// The time for which taints are tolerated, for comparisons: without a limit it is longer than with any.
    fn time(&self) -> (bool, i64) {
        let limit = self.seconds.filter(|_| self.effect == "NoExecute");
        (limit.is_none(), limit.unwrap_or_default())
    }

    /// Whether this toleration tolerates everything that the other one does.
    fn includes(&self, other: &Toleration) -> bool {
        if self == other {
            return true;
        }
        if self.key != other.key && !self.tolerates_any_key()
            || self.effect != other.effect && !self.effect.is_empty()
        {
            return false;
        }
        if let (true, Some(limit)) = (self.effect == "NoExecute", self.seconds)
            && other.seconds.is_none_or(|seconds| seconds > limit)
        {
            return false;
        }
        match self.operator.as_str() {
            "Equal" | "" => other.operator == "Equal" && other.value == self.value,
            "Exists" => true,
            _ => false,
        }
    }
}

/// The tolerations of a pod.
pub(super) fn of_pod(pod: &Value) -> Vec<Toleration> {
    pod.items_at("spec.tolerations").iter().map(Toleration::of).collect()
}

/// Sets the tolerations of a pod.
pub(super) fn set(pod: &mut Value, tolerations: &[Toleration]) {
    let items: Vec<Value> = tolerations.iter().map(Toleration::to_value).collect();
    pod.set("spec.tolerations", items);
}

/// The tolerations of both lists without those that another one includes. Of equal ones the first is kept.
pub(super) fn merge(first: &[Toleration], second: &[Toleration]) -> Vec<Toleration> {
    let all: Vec<&Toleration> = first.iter().chain(second).collect();
    let is_kept = widest(&all);
    all.into_iter().zip(is_kept).filter(|(_, is_kept)| *is_kept).map(|(own, _)| own.clone()).collect()
}

/// Whether each toleration stays when those that another one includes are removed. Of equal ones the first stays.
///
/// A pod may have very many tolerations: each one is looked up, not compared with all others.
pub(super) fn widest(all: &[&Toleration]) -> Vec<bool> {
    let mut later = Included::default();
    let mut is_kept: Vec<bool> = all
        .iter()
        .rev()
        .map(|toleration| {
            let is_widest = !later.by_another(toleration);
            later.insert(toleration);
            is_widest
        })
        .collect();
    is_kept.reverse();
    let (mut kept, mut equal) = (Included::default(), HashSet::new());
    for (toleration, is_kept) in all.iter().zip(&mut is_kept) {
        *is_kept = *is_kept && !equal.contains(toleration) && !kept.by_another(toleration);
        if *is_kept {
            equal.insert(*toleration);
            kept.insert(toleration);
        }
    }
    is_kept
}

/// The tolerations that a set of tolerations includes.
#[derive(Default)]
struct Included<'a>(HashMap<Extent<'a>, Widest<'a>>);

/// The taints that a toleration tolerates, without its limit of time.
#[derive(PartialEq, Eq, Hash)]
struct Extent<'a> {
    /// Any key, or this one.
    key: Option<&'a str>,
    /// The empty one is any effect.
    effect: &'a str,
    /// Any value, or this one.
    value: Option<&'a str>,
}

/// The two tolerations with the longest times of an extent, which differ.
struct Widest<'a> {
    first: &'a Toleration,
    second: Option<&'a Toleration>,
}

impl<'a> Included<'a> {
    fn insert(&mut self, toleration: &'a Toleration) {
        let any_key = toleration.tolerates_any_key();
        let value = match toleration.operator.as_str() {
            "Exists" => None,
            "" | "Equal" => Some(toleration.value.as_str()),
            // Includes none but equal ones.
            _ => return,
        };
        let key = (!any_key).then_some(toleration.key.as_str());
        let extent = Extent { key, effect: &toleration.effect, value };
        let mut next = toleration;
        match self.0.entry(extent) {
            Entry::Vacant(entry) => drop(entry.insert(Widest { first: toleration, second: None })),
            Entry::Occupied(mut entry) => {
                let Widest { first, second } = entry.get_mut();
                if next == *first {
                    return;
                }
                if next.time() > first.time() {
                    std::mem::swap(&mut next, first);
                }
                if second.is_none_or(|second| next.time() > second.time()) {
                    *second = Some(next);
                }
            }
        }
    }

    /// Whether a toleration of the set that differs from this one includes it.
    fn by_another(&self, toleration: &Toleration) -> bool {
        let keys = [None, Some(toleration.key.as_str())];
        let effects = [Some(""), Some(toleration.effect.as_str()).filter(|effect| !effect.is_empty())];
        let values = [None, Some(toleration.value.as_str())];
        keys.into_iter().any(|key| {
            effects.into_iter().flatten().any(|effect| {
                values.into_iter().any(|value| {
                    self.0.get(&Extent { key, effect, value }).is_some_and(|Widest { first, second }| {
                        let other = if *first == toleration { *second } else { Some(*first) };
                        other.is_some_and(|other| other.includes(toleration))
                    })
                })
            })
        })
    }
}

/// Whether each toleration is included in one of the allowed ones. Without allowed ones, every toleration is.
pub(super) fn are_allowed(tolerations: &[Toleration], allowed: &[Toleration]) -> bool {
    allowed.is_empty() || tolerations.iter().all(|own| allowed.iter().any(|one| one.includes(own)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;
    use proptest::{collection::vec, prelude::*, sample::select};
    use std::time::{Duration, Instant};

    fn list(value: Value) -> Vec<Toleration> {
        value.as_array().unwrap().iter().map(Toleration::of).collect()
    }

    #[test]
    fn merged_tolerations_are_the_widest_ones() {
        let check = |first: Value, second: Value, expected: Value| {
            let merged = merge(&list(first.clone()), &list(second.clone()));
            let found: Vec<Value> = merged.iter().map(Toleration::to_value).collect();
            assert_eq!(Value::Array(found), expected, "{first} {second}");
        };
        let any = json!({"key": "a", "operator": "Exists"});
        let equal = json!({"key": "a", "operator": "Equal", "value": "b", "effect": "NoSchedule"});
        let plain = json!({"key": "a", "value": "b", "effect": "NoSchedule"});
        check(json!([equal]), json!([any]), json!([any]));
        check(json!([any]), json!([equal]), json!([any]));
        check(json!([plain]), json!([any]), json!([any]));
        check(json!([plain]), json!([equal]), json!([plain]));
        check(json!([any]), json!([any]), json!([any]));
        check(json!([equal]), json!([{"operator": "Exists"}]), json!([{"operator": "Exists"}]));
        let seconds = |seconds: i64| json!({"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds});
        check(json!([seconds(10)]), json!([seconds(20)]), json!([seconds(20)]));
        check(json!([seconds(20)]), json!([seconds(10)]), json!([seconds(20)]));
        check(json!([equal]), json!([seconds(1)]), json!([equal, seconds(1)]));
        let unlimited = json!({"key": "a", "operator": "Exists", "effect": "NoExecute"});
        let least = json!({"key": "a", "value": "v", "effect": "NoExecute", "operator": "Equal"});
        check(json!([seconds(i64::MAX), unlimited]), json!([least]), json!([unlimited]));
        check(json!([least, seconds(i64::MAX)]), json!([unlimited]), json!([unlimited]));
    }

    #[test]
    fn tolerations_are_allowed_by_wider_ones() {
        let check = |tolerations: Value, allowed: Value, expected: bool| {
            assert_eq!(are_allowed(&list(tolerations.clone()), &list(allowed)), expected, "{tolerations}");
        };
        let any = json!([{"key": "a", "operator": "Exists"}]);
        check(json!([{"key": "a", "effect": "NoSchedule"}]), any.clone(), true);
        check(json!([{"key": "b"}]), any.clone(), false);
        check(json!([{"key": "b"}]), json!([]), true);
        check(json!([]), any, true);
        check(json!([{"key": "a"}]), json!([{"key": "a", "operator": "Else"}]), false);
    }

    /// Compares each toleration with all others.
    fn widest_by_comparison(all: &[&Toleration]) -> Vec<bool> {
        let mut kept: Vec<&Toleration> = Vec::new();
        let mut is_kept = Vec::new();
        for (index, toleration) in all.iter().enumerate() {
            let mut later = all[index + 1..].iter();
            let is_redundant = kept.iter().any(|kept| kept.includes(toleration))
                || later.any(|other| other != toleration && other.includes(toleration));
            is_kept.push(!is_redundant);
            if !is_redundant {
                kept.push(toleration);
            }
        }
        is_kept
    }

    fn any_toleration() -> impl Strategy<Value = Toleration> {
        let seconds = select(vec![None, Some(0), Some(5), Some(9), Some(i64::MAX)]);
        let (keys, operators) = (select(vec!["", "a", "b"]), select(vec!["", "Equal", "Exists", "Other"]));
        let (values, effects) = (select(vec!["", "v"]), select(vec!["", "NoSchedule", "NoExecute"]));
        (keys, operators, values, effects, seconds).prop_map(|(key, operator, value, effect, seconds)| {
            Toleration {
                key: key.to_owned(),
                operator: operator.to_owned(),
                value: value.to_owned(),
                effect: effect.to_owned(),
                seconds,
            }
        })
    }

    proptest! {
        #[test]
        fn looking_up_finds_the_same_as_comparing(all in vec(any_toleration(), 0..12)) {
            let all: Vec<&Toleration> = all.iter().collect();
            prop_assert_eq!(widest(&all), widest_by_comparison(&all));
        }
    }

    #[test]
    fn very_many_tolerations_are_looked_up() {
        let all: Vec<Toleration> = (0..50_000)
            .map(|number| Toleration { seconds: Some(number), ..Toleration::exists("k", "NoExecute") })
            .chain((0..50_000).map(|number| Toleration::exists(&number.to_string(), "NoSchedule")))
            .collect();
        let started = Instant::now();
        let kept = widest(&all.iter().collect::<Vec<_>>());
        assert_eq!(kept.iter().filter(|kept| **kept).count(), 50_001);
        assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    }
}
