//! The keys of the objects that have a label.

use crate::{CachedObject, Label, counted_tree::CountedTree};
use pintle_storage::Key;

/// The keys of the objects that have a label. Persistent, as the map that it belongs to. They are keys and not objects, so
/// that a write which does not change the label, as most do not, does not change the index.
#[derive(Debug, Clone)]
pub(crate) struct LabelIndex {
    label: Label,
    keys: CountedTree<Key>,
}

impl LabelIndex {
    /// The index of a label without objects.
    pub(crate) fn new(label: Label) -> LabelIndex {
        LabelIndex { label, keys: CountedTree::default() }
    }

    pub(crate) fn label(&self) -> &Label {
        &self.label
    }

    /// The keys of the objects that have the label.
    pub(crate) fn keys(&self) -> &CountedTree<Key> {
        &self.keys
    }

    /// Whether the write of an object in place of another leaves the index as it is.
    pub(crate) fn is_same(&self, object: &CachedObject, replaced: Option<&CachedObject>) -> bool {
        self.label.is_on(object) == replaced.is_some_and(|replaced| self.label.is_on(replaced))
    }

    /// Adds an object if it has the label.
    pub(crate) fn add(&mut self, object: &CachedObject) {
        if self.label.is_on(object) {
            self.keys.insert(object.key().clone());
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
        if self.label.is_on(object) {
            self.keys.remove(object.key().as_str());
        }
    }
}
