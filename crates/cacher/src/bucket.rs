//! The buckets of the index of watchers: the key, namespace or field value that a watcher requires of an object.

use crate::{CachedObject, Trigger, TriggerField, WatchScope};
use pintle_storage::Key;
use std::sync::Arc;

/// The field that every object has and that is always indexed.
const NAME: &str = "metadata.name";

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Bucket {
    Object(Key),
    /// The index of the field among the selectable fields, and its value.
    Field(usize, Arc<str>),
    Name(Arc<str>),
    Namespace(Arc<str>),
    All,
}

/// The field value that a trigger requires of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Requirement {
    /// The index of a field among the selectable fields, and its value.
    Field(usize, Arc<str>),
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

    pub(crate) fn matches(&self, object: &CachedObject) -> bool {
        match self {
            Requirement::Field(field, value) => object.field(*field) == Some(&**value),
            Requirement::Name(name) => object.name() == &**name,
        }
    }
}

impl Bucket {
    pub(crate) fn new(scope: &WatchScope, requirement: Option<&Requirement>) -> Bucket {
        match (scope, requirement) {
            (WatchScope::Object(key), _) => Bucket::Object(key.clone()),
            (_, Some(Requirement::Name(name))) => Bucket::Name(name.clone()),
            (_, Some(Requirement::Field(field, value))) => Bucket::Field(*field, value.clone()),
            (WatchScope::Namespace(namespace), None) => Bucket::Namespace(namespace.clone()),
            (WatchScope::All, None) => Bucket::All,
        }
    }
}
