//! Bounds the work of validating one object.
//!
//! A definition may have as many alternatives, required names or characters of patterns as fit into a request, an
//! object as many values, and each of the former may be checked against each of the latter. Checks are therefore
//! counted, and an object that needs too many is rejected.

use pintle_machinery::{FieldError, FieldPath, Text, Value};
use std::cell::Cell;

/// The maximum number of checks for an object. One check costs about as much as a comparison of two numbers.
const MAX_CHECKS: u64 = 10_000_000;

/// The bytes of a text that are compared or hashed in the time of one check.
const COMPARED: usize = 16;

/// The remaining checks of one object, or of all defaults of one definition.
#[derive(Debug)]
pub(crate) struct Effort(Cell<u64>);

impl Effort {
    pub(crate) fn new() -> Effort {
        Effort(Cell::new(MAX_CHECKS))
    }

    /// Whether this number of further checks is available; deducts them.
    pub(super) fn spend(&self, checks: usize) -> bool {
        let left = self.0.get().checked_sub(checks as u64);
        self.0.set(left.unwrap_or(0));
        left.is_some()
    }

    /// Whether enough checks are left to compare a value with another one, or to hash it; deducts them. A walk along
    /// the value ends with the checks.
    pub(super) fn spend_comparison(&self, value: &Value) -> bool {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => self.spend(1),
            Value::String(text) => self.spend(1 + text.len() / COMPARED),
            Value::Array(items) => self.spend(1) && items.iter().all(|item| self.spend_comparison(item)),
            Value::Object(members) => {
                let spend = |(name, member): (&Text, &Value)| {
                    self.spend(1 + name.len() / COMPARED) && self.spend_comparison(member)
                };
                self.spend(1) && members.iter().all(spend)
            }
        }
    }

    /// The error for an object that took too many checks; `None` while checks remain.
    pub(super) fn error(&self, path: &FieldPath) -> Option<FieldError> {
        let detail = "checking the object against its schema takes too long: it has too many values for so many \
                      alternatives, required properties, list keys or patterns";
        (self.0.get() == 0).then(|| FieldError::forbidden(path, detail))
    }
}
