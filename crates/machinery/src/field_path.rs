//! Where in an object a validation error is.

use std::fmt;

/// The path of a field as validation messages print it: `spec.containers[0].env[KEY].name`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldPath(String);

impl FieldPath {
    /// A path that starts at a top-level field; "" is the object itself.
    pub fn new(name: &str) -> FieldPath {
        FieldPath(name.to_owned())
    }

    /// A member of this field.
    #[must_use]
    pub fn child(&self, name: &str) -> FieldPath {
        match self.0.is_empty() {
            true => FieldPath(name.to_owned()),
            false => FieldPath(format!("{}.{name}", self.0)),
        }
    }

    /// An item of this list.
    #[must_use]
    pub fn index(&self, index: usize) -> FieldPath {
        FieldPath(format!("{}[{index}]", self.0))
    }

    /// A value of this map.
    #[must_use]
    pub fn key(&self, key: &str) -> FieldPath {
        FieldPath(format!("{}[{key}]", self.0))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "<nil>" } else { &self.0 })
    }
}
