//! Values that a selector requires of an object and that the cache is, or may be, indexed by.

use crate::{CachedObject, Label, Trigger, TriggerField};
use std::sync::Arc;

/// The field that every object has and that is always indexed.
const NAME: &str = "metadata.name";

/// A property that an object must have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Requirement {
    /// A selectable field, by its position in [`CachedObject::fields`].
    Field(usize, Arc<str>),
    /// `metadata.name`.
    Name(Arc<str>),
    /// All of these labels.
    Labels(Vec<Label>),
}

impl Requirement {
    /// `None` for a field that is not indexed.
    pub(crate) fn new(trigger: Trigger, fields: &[TriggerField]) -> Option<Requirement> {
        let Trigger { field, value } = trigger;
        if &*field == NAME {
            return Some(Requirement::Name(value));
        }
        let field = fields.iter().find(|known| known.name == field)?;
        Some(Requirement::Field(field.index, value))
    }

    /// Whether an object has what is required.
    pub fn matches(&self, object: &CachedObject) -> bool {
        match self {
            Requirement::Field(field, value) => object.field(*field) == Some(&**value),
            Requirement::Name(name) => object.name() == &**name,
            Requirement::Labels(labels) => labels.iter().all(|label| label.is_on(object)),
        }
    }
}
