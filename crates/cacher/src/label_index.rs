//! The index of the objects of a resource by one label.

use crate::{
    CachedObject,
    value_index::{KeyTree, ValueIndex},
};
use std::sync::Arc;

/// The divisor of the largest part of the objects that is looked up by key: more of them cost as much as walking all.
pub(crate) const PART: usize = 16;

/// The keys of the objects by the value of the label with one name. Persistent, as the map that it belongs to.
#[derive(Debug, Clone)]
pub(crate) struct LabelIndex {
    name: Arc<str>,
    values: ValueIndex,
}

impl LabelIndex {
    /// The index of a label without objects.
    pub(crate) fn new(name: Arc<str>) -> LabelIndex {
        LabelIndex { name, values: ValueIndex::default() }
    }

    /// The name of the label.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The keys of the objects that have the label with this value.
    pub(crate) fn keys(&self, value: &str) -> &KeyTree {
        self.values.get(value)
    }

    /// Whether the values of the label select few of `objects` objects, on average.
    pub(crate) fn selects_few(&self, objects: usize) -> bool {
        self.values.keys() <= self.values.values().saturating_mul(objects / PART)
    }

    /// The memory that the index takes, in bytes, about.
    pub(crate) fn bytes(&self) -> usize {
        self.values.bytes()
    }

    fn value_of<'a>(&self, object: &'a CachedObject) -> Option<&'a Arc<str>> {
        object.labels().value(&self.name)
    }

    /// Whether the write of an object in place of another leaves the index as it is.
    pub(crate) fn is_same(&self, object: &CachedObject, replaced: Option<&CachedObject>) -> bool {
        self.value_of(object) == replaced.and_then(|replaced| self.value_of(replaced))
    }

    /// Adds an object if it has the label.
    pub(crate) fn add(&mut self, object: &CachedObject) {
        if let Some(value) = self.value_of(object) {
            self.values.insert(value, object.key().clone());
        }
    }

    /// Adds an object if it has the label, in place of another.
    pub(crate) fn replace(&mut self, object: &CachedObject, replaced: Option<&CachedObject>) {
        if !self.is_same(object, replaced) {
            replaced.into_iter().for_each(|replaced| self.remove(replaced));
            self.add(object);
        }
    }

    /// Removes an object.
    pub(crate) fn remove(&mut self, object: &CachedObject) {
        if let Some(value) = self.value_of(object) {
            self.values.remove(value, object.key());
        }
    }
}
