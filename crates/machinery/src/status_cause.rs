//! The causes in the details of a `Status`.

use crate::Value;

/// One cause of a failure.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StatusCause {
    /// The type of the cause, for programs.
    pub reason: String,
    /// The message for people.
    pub message: String,
    /// The path of the field.
    pub field: String,
}

impl StatusCause {
    pub(crate) fn to_value(&self) -> Value {
        let mut object = pintle_tree::Map::new();
        for (name, text) in [("reason", &self.reason), ("message", &self.message), ("field", &self.field)] {
            if !text.is_empty() {
                object.insert(name, text.as_str().into());
            }
        }
        Value::Object(object)
    }
}
