//! The buckets of the index of watchers: the key, namespace or field value that a watcher requires of an object.

use crate::{Requirement, WatchScope};
use pintle_storage::Key;
use std::sync::Arc;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Bucket {
    Object(Key),
    /// The index of the field among the selectable fields, and its value.
    Field(usize, Arc<str>),
    Name(Arc<str>),
    Namespace(Arc<str>),
    All,
}

impl Bucket {
    pub(crate) fn new(scope: &WatchScope, requirement: Option<&Requirement>) -> Bucket {
        match (scope, requirement) {
            (WatchScope::Object(key), _) => Bucket::Object(key.clone()),
            (_, Some(Requirement::Name(name))) => Bucket::Name(name.clone()),
            (_, Some(Requirement::Field(field, value))) => Bucket::Field(*field, value.clone()),
            (WatchScope::Namespace(namespace), _) => Bucket::Namespace(namespace.clone()),
            (WatchScope::All, _) => Bucket::All,
        }
    }
}
