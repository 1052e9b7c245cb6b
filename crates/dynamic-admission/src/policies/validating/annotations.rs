//! The audit annotations of validating policies.

use super::decision::Decision;
use crate::policies::binding::Binding;
use pintle_machinery::{Value, text::escape_html};
use std::collections::HashSet;

/// The key of the annotation for failures that a binding only records.
pub(super) const FAILURE_KEY: &str = "validation.policy.admission.k8s.io/validation_failure";
/// The maximum size of a value, in bytes.
const MAX_VALUE: usize = 10 * 1024;

/// The value of the annotation for a failure: a list with one item, whose fields have the reference's order.
pub(super) fn failure_value(policy: &str, binding: &Binding, index: usize, decision: &Decision) -> String {
    let json = |text: &str| escape_html(&Value::from(text).to_string());
    let actions: Vec<String> = binding.actions.iter().map(|action| json(action)).collect();
    format!(
        "[{{\"message\":{},\"policy\":{},\"binding\":{},\"expressionIndex\":{index},\"validationActions\":[{}]}}]",
        json(&decision.message),
        json(policy),
        json(&binding.name),
        actions.join(","),
    )
}

/// The maximum size of all values of a policy, in bytes: there may be as many parameters as a namespace has objects.
const MAX_VALUES: usize = 1 << 20;
/// The memory of a value beside its bytes, which counts as well.
const OF_EACH: usize = 64;

/// The annotations of one policy: a key has the different values of all bindings and parameters. Values that would make
/// them larger than a megabyte are left out.
pub(super) struct Annotations {
    keys: Vec<(Box<str>, Values)>,
    room: usize,
}

/// Different values, in the order in which they were added.
#[derive(Default)]
struct Values {
    joined: String,
    seen: HashSet<String>,
}

impl Default for Annotations {
    fn default() -> Annotations {
        Annotations { keys: Vec::new(), room: MAX_VALUES }
    }
}

impl Annotations {
    pub(super) fn add(&mut self, key: Box<str>, mut value: String) {
        if value.len() > MAX_VALUE {
            let is_boundary = |end: &usize| value.is_char_boundary(*end);
            value.truncate((0..=MAX_VALUE).rev().find(is_boundary).unwrap_or_default());
        }
        let index = self.keys.iter().position(|(own, _)| *own == key).unwrap_or(self.keys.len());
        if index == self.keys.len() {
            self.keys.push((key, Values::default()));
        }
        let Some((_, values)) = self.keys.get_mut(index) else { return };
        if values.seen.contains(&value) {
            return;
        }
        let Some(room) = self.room.checked_sub(value.len() + OF_EACH) else { return };
        self.room = room;
        if !values.seen.is_empty() {
            values.joined.push_str(", ");
        }
        values.joined.push_str(&value);
        values.seen.insert(value);
    }

    /// The annotations as those of an audit event.
    pub(super) fn of_policy(self, policy: &str) -> impl Iterator<Item = (String, String)> {
        self.keys.into_iter().map(move |(key, values)| (format!("{policy}/{key}"), values.joined))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;
    use std::time::Duration;

    #[test]
    fn failures_are_recorded_as_json_of_go() {
        let binding = json!({"metadata": {"name": "b"}, "spec": {"validationActions": ["Audit", "Warn"]}});
        let decision = Decision::error("a < b".to_owned(), false, Duration::ZERO);
        assert_eq!(
            failure_value("p", &Binding::new(&binding), 1, &decision),
            r#"[{"message":"a \u003c b","policy":"p","binding":"b","expressionIndex":1,"validationActions":["Audit","Warn"]}]"#
        );
    }

    #[test]
    fn values_of_one_key_are_joined_once_each_and_bounded() {
        let mut annotations = Annotations::default();
        for value in ["x", "y", "x"] {
            annotations.add("k".into(), value.to_owned());
        }
        annotations.add("long".into(), "é".repeat(MAX_VALUE));
        let found: Vec<_> = annotations.of_policy("p").collect();
        assert_eq!(found[0], ("p/k".to_owned(), "x, y".to_owned()));
        assert_eq!(found[1].1.len(), MAX_VALUE);
    }

    #[test]
    fn values_of_very_many_parameters_are_looked_up_and_bounded() {
        let mut annotations = Annotations::default();
        let start = "x".repeat(MAX_VALUE - 10);
        for index in 0..20_000 {
            annotations.add("k".into(), format!("{start}{index:09}"));
        }
        let found: Vec<_> = annotations.of_policy("p").collect();
        assert!(found[0].1.len() < MAX_VALUES + MAX_VALUE, "{}", found[0].1.len());
    }
}
