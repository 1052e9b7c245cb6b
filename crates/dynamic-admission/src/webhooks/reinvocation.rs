//! The webhooks that are called again in the second round of mutating admission
//! (<https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#reinvocation-policy>).

use pintle_machinery::{Value, validation::semantically_equal};
use std::collections::HashSet;

/// The webhooks of one request that asked to be called again if needed.
#[derive(Debug, Default)]
pub(super) struct Reinvoked {
    /// Called, and not to be called again unless the object changes.
    called: HashSet<String>,
    /// To be called again.
    due: HashSet<String>,
    /// The object after the last round.
    output: Option<Value>,
}

impl Reinvoked {
    /// Begins the second round: other plugins may have changed the object since the first one.
    pub(super) fn begin_second_round(&mut self, object: &Value) {
        if self.output.take().is_some_and(|output| !semantically_equal(&output, object)) {
            self.changed();
        }
    }

    /// Whether the second round calls this webhook.
    pub(super) fn is_due(&self, webhook: &str) -> bool {
        self.due.contains(webhook)
    }

    /// A webhook has changed the object: all that were called before must see the change.
    pub(super) fn changed(&mut self) {
        self.due.extend(self.called.drain());
    }

    /// A webhook that may be called again was called.
    pub(super) fn called(&mut self, webhook: &str) {
        self.called.insert(webhook.to_owned());
    }

    /// Ends a round. The object is only kept if a webhook may be called again.
    pub(super) fn end_round(&mut self, object: &Value) {
        let is_needed = !self.called.is_empty() || !self.due.is_empty();
        self.output = is_needed.then(|| object.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    #[test]
    fn webhooks_called_before_a_change_are_due() {
        let mut reinvoked = Reinvoked::default();
        reinvoked.called("a");
        reinvoked.changed();
        reinvoked.called("b");
        assert!(reinvoked.is_due("a") && !reinvoked.is_due("b") && !reinvoked.is_due("c"));
    }

    #[test]
    fn a_change_between_the_rounds_makes_all_due() {
        let check = |before: Value, expected: bool| {
            let mut reinvoked = Reinvoked::default();
            reinvoked.called("a");
            reinvoked.end_round(&json!({"a": 1}));
            reinvoked.begin_second_round(&before);
            assert_eq!(reinvoked.is_due("a"), expected, "{before}");
        };
        check(json!({"a": 1}), false);
        check(json!({"a": 2}), true);
    }
}
