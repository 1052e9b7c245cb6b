//! A label that an object may have.

use crate::CachedObject;
use std::sync::Arc;

/// The name and the value of a label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// The name.
    pub name: Arc<str>,
    /// The value.
    pub value: Arc<str>,
}

impl Label {
    /// Whether an object has the label.
    pub fn is_on(&self, object: &CachedObject) -> bool {
        object.labels().get(&self.name) == Some(&*self.value)
    }
}
