//! The policies that the second round of mutating admission calls again
//! (<https://kubernetes.io/docs/reference/access-authn-authz/mutating-admission-policy/>).

use pintle_machinery::Value;
use std::collections::HashSet;

/// A policy with a binding and parameters: their names, and the namespace of the parameters.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct InvocationKey {
    pub(super) policy: Box<str>,
    pub(super) binding: Box<str>,
    pub(super) param: Option<(Box<str>, Box<str>)>,
}

/// The calls of policies in the first round.
#[derive(Default)]
pub(super) struct Calls {
    /// The object after the last call.
    last_output: Option<Value>,
    /// The calls of policies with `IfNeeded`, since another one has changed the object.
    reinvocable: HashSet<InvocationKey>,
    /// The calls to repeat.
    repeated: HashSet<InvocationKey>,
}

impl Calls {
    /// Begins the second round with an object, which other plugins may have changed since the first.
    pub(super) fn begin_second_round(&mut self, object: &Value) {
        if self.last_output.as_ref() != Some(object) {
            self.note_change();
        }
    }

    /// Whether the second round repeats a call.
    pub(super) fn repeats(&self, key: &InvocationKey) -> bool {
        self.repeated.contains(key)
    }

    /// Notes that a policy was called that may be called again.
    pub(super) fn note_reinvocable(&mut self, key: InvocationKey) {
        self.reinvocable.insert(key);
    }

    /// Notes that the object has changed: all calls before are to be repeated.
    pub(super) fn note_change(&mut self) {
        self.repeated.extend(self.reinvocable.drain());
    }

    /// Ends a round.
    pub(super) fn end_round(&mut self, object: &Value) {
        self.last_output = Some(object.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    fn key(policy: &str) -> InvocationKey {
        InvocationKey { policy: policy.into(), binding: "b".into(), param: None }
    }

    #[test]
    fn a_change_repeats_the_calls_before_it() {
        let mut calls = Calls::default();
        calls.note_reinvocable(key("a"));
        calls.note_change();
        calls.note_reinvocable(key("b"));
        calls.end_round(&json!(1));
        calls.begin_second_round(&json!(1));
        assert!(calls.repeats(&key("a")) && !calls.repeats(&key("b")));
        // Another plugin has changed the object.
        calls.begin_second_round(&json!(2));
        assert!(calls.repeats(&key("b")) && !calls.repeats(&key("never")));
    }
}
