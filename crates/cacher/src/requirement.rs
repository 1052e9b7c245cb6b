//! A value that a selector requires of an object and that the cache is indexed by.

use crate::{CachedObject, Trigger, TriggerField};
use std::sync::Arc;

/// The field that every object has and that is always indexed.
const NAME: &str = "metadata.name";

/// A field with the value that an object must have in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Requirement {
    /// A selectable field, by its position in [`CachedObject::fields`].
    Field(usize, Arc<str>),
    /// `metadata.name`.
    Name(Arc<str>),
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

    /// Whether an object has the value.
    pub fn matches(&self, object: &CachedObject) -> bool {
        match self {
            Requirement::Field(field, value) => object.field(*field) == Some(&**value),
            Requirement::Name(name) => object.name() == &**name,
        }
    }
}
