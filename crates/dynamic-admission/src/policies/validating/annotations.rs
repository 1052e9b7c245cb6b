//! The audit annotations of validating policies.

use super::decision::Decision;
use crate::policies::binding::Binding;
use pintle_machinery::{Value, text::escape_html};

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

/// The annotations of one policy: a key has the different values of all bindings and parameters.
#[derive(Default)]
pub(super) struct Annotations(Vec<(Box<str>, Vec<String>)>);

impl Annotations {
    pub(super) fn add(&mut self, key: Box<str>, mut value: String) {
        if value.len() > MAX_VALUE {
            let is_boundary = |end: &usize| value.is_char_boundary(*end);
            value.truncate((0..=MAX_VALUE).rev().find(is_boundary).unwrap_or_default());
        }
        match self.0.iter_mut().find(|(own, _)| *own == key) {
            Some((_, values)) if values.contains(&value) => {}
            Some((_, values)) => values.push(value),
            None => self.0.push((key, vec![value])),
        }
    }

    /// The annotations as those of an audit event.
    pub(super) fn of_policy(self, policy: &str) -> impl Iterator<Item = (String, String)> {
        self.0.into_iter().map(move |(key, values)| (format!("{policy}/{key}"), values.join(", ")))
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
}
