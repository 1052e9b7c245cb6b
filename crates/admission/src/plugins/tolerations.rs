//! Tolerations of pods, as values that can be compared
//! (<https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/>).

use pintle_machinery::{Map, Value, ValueExt};

/// A toleration.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
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

    /// Whether this toleration tolerates everything that the other one does.
    fn includes(&self, other: &Toleration) -> bool {
        if self == other {
            return true;
        }
        let is_any_key = self.key.is_empty() && self.operator == "Exists";
        if self.key != other.key && !is_any_key || self.effect != other.effect && !self.effect.is_empty() {
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
///
/// `second` comes from the configuration of the cluster or namespace: the work is its length times the length of both.
pub(super) fn merge(first: &[Toleration], second: &[Toleration]) -> Vec<Toleration> {
    let all: Vec<&Toleration> = first.iter().chain(second).collect();
    let mut merged: Vec<Toleration> = Vec::new();
    for (index, toleration) in all.iter().enumerate() {
        let mut later = all.iter().skip(index + 1);
        let is_redundant = merged.iter().any(|kept| kept.includes(toleration))
            || later.any(|other| other != toleration && other.includes(toleration));
        if !is_redundant {
            merged.push((*toleration).clone());
        }
    }
    merged
}

/// Whether each toleration is included in one of the allowed ones. Without allowed ones, every toleration is.
pub(super) fn are_allowed(tolerations: &[Toleration], allowed: &[Toleration]) -> bool {
    allowed.is_empty() || tolerations.iter().all(|own| allowed.iter().any(|one| one.includes(own)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

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
}
