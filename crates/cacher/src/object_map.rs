//! The objects of a resource by key, by the values of its indexed fields, and by some labels.

use crate::{
    CachedObject, Label,
    counted_tree::CountedTree,
    label_index::{LabelIndex, PART},
    value_index::{KeyTree, ValueIndex},
};
use std::sync::Arc;

pub(crate) type ObjectTree = CountedTree<Arc<CachedObject>>;

/// Objects by key, by indexed field and by indexed label. Persistent: a clone takes constant time and shares all objects.
///
/// Invariant: each index has exactly the objects of the map.
#[derive(Debug, Clone, Default)]
pub(crate) struct ObjectMap {
    by_key: ObjectTree,
    /// `None` for a map without indexes, such as a part of a past state.
    by_field: Option<Arc<Vec<FieldIndex>>>,
    by_label: Arc<Vec<LabelIndex>>,
}

/// The keys of the objects by the value of one field.
#[derive(Debug, Clone)]
struct FieldIndex {
    /// The position of the field among the selectable fields.
    field: usize,
    values: ValueIndex,
}

impl FieldIndex {
    /// The value of the field; that of an object without the field is empty, as selectors have it.
    fn value_of(&self, object: &CachedObject) -> Arc<str> {
        object.fields().get(self.field).cloned().unwrap_or_default()
    }

    /// Whether the replaced object had the same value.
    fn has(&self, object: &CachedObject, replaced: Option<&CachedObject>) -> bool {
        replaced.is_some_and(|replaced| self.value_of(replaced) == self.value_of(object))
    }

    fn insert(&mut self, object: &CachedObject, replaced: Option<&CachedObject>) {
        if self.has(object, replaced) {
            return;
        }
        if let Some(replaced) = replaced {
            self.remove(replaced);
        }
        self.values.insert(&self.value_of(object), object.key().clone());
    }

    fn remove(&mut self, object: &CachedObject) {
        self.values.remove(&self.value_of(object), object.key());
    }
}

impl ObjectMap {
    /// The same objects, indexed by the fields at these positions among the selectable fields.
    pub(crate) fn indexed_by(mut self, fields: impl IntoIterator<Item = usize>) -> ObjectMap {
        let mut indexes: Vec<FieldIndex> =
            fields.into_iter().map(|field| FieldIndex { field, values: ValueIndex::default() }).collect();
        for index in &mut indexes {
            for object in self.by_key.iter() {
                index.insert(object, None);
            }
        }
        self.by_field = (!indexes.is_empty()).then(|| Arc::new(indexes));
        self
    }

    /// All objects by key.
    pub(crate) fn by_key(&self) -> &ObjectTree {
        &self.by_key
    }

    /// The keys of the objects that have a value in a field; `None` if the map has no index of the field.
    pub(crate) fn by_field(&self, field: usize, value: &str) -> Option<&KeyTree> {
        let index = self.by_field.as_ref()?.iter().find(|index| index.field == field)?;
        Some(index.values.get(value))
    }

    /// The keys of the objects that have all of the labels, and possibly of others: those of the indexed label that has the
    /// fewest. `None` if none of the labels is indexed, or if they are so many that walking all objects costs no more.
    pub(crate) fn by_labels(&self, labels: &[Label]) -> Option<&KeyTree> {
        let of_label = |label: &Label| {
            self.by_label
                .iter()
                .find(|index| index.name() == &*label.name)
                .map(|index| index.keys(&label.value))
        };
        let fewest = labels.iter().filter_map(of_label).min_by_key(|keys| keys.len());
        fewest.filter(|keys| keys.len() <= self.len() / PART)
    }

    /// Adds an index that has exactly the objects of the map.
    pub(crate) fn add_label_index(&mut self, index: LabelIndex) {
        Arc::make_mut(&mut self.by_label).push(index);
    }

    /// Drops the index of a label.
    pub(crate) fn drop_label_index(&mut self, name: &str) {
        Arc::make_mut(&mut self.by_label).retain(|index| index.name() != name);
    }

    /// The memory that the indexes of labels take, in bytes, about.
    pub(crate) fn label_index_bytes(&self) -> usize {
        self.by_label.iter().map(LabelIndex::bytes).sum()
    }

    /// Inserts an object under its key; returns the one that it replaces.
    pub(crate) fn insert(&mut self, object: Arc<CachedObject>) -> Option<Arc<CachedObject>> {
        let replaced = self.by_key.insert(object.clone());
        if let Some(indexes) = &mut self.by_field
            && !indexes.iter().all(|index| index.has(&object, replaced.as_deref()))
        {
            for index in Arc::make_mut(indexes) {
                index.insert(&object, replaced.as_deref());
            }
        }
        if !self.by_label.iter().all(|index| index.is_same(&object, replaced.as_deref())) {
            Arc::make_mut(&mut self.by_label)
                .iter_mut()
                .for_each(|index| index.replace(&object, replaced.as_deref()));
        }
        replaced
    }

    /// Removes the object with this key.
    pub(crate) fn remove(&mut self, key: &str) -> Option<Arc<CachedObject>> {
        let removed = self.by_key.remove(key)?;
        for index in self.by_field.iter_mut().flat_map(Arc::make_mut) {
            index.remove(&removed);
        }
        if !self.by_label.is_empty() {
            Arc::make_mut(&mut self.by_label).iter_mut().for_each(|index| index.remove(&removed));
        }
        Some(removed)
    }

    /// The object with this key.
    pub(crate) fn get(&self, key: &str) -> Option<&Arc<CachedObject>> {
        self.by_key.get(key)
    }

    /// The number of objects.
    pub(crate) fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Whether both are clones of one map, without a write since then.
    pub(crate) fn ptr_eq(&self, other: &ObjectMap) -> bool {
        self.by_key.ptr_eq(&other.by_key)
    }
}

impl FromIterator<Arc<CachedObject>> for ObjectMap {
    /// A map without indexes.
    fn from_iter<I: IntoIterator<Item = Arc<CachedObject>>>(objects: I) -> ObjectMap {
        ObjectMap { by_key: objects.into_iter().collect(), ..ObjectMap::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::object_of;

    #[test]
    fn an_index_has_the_objects_with_each_value() {
        let mut objects: ObjectMap =
            ["a", "b"].iter().map(|name| object_of(&format!("/p/{name}"), 1, "node=x")).collect();
        assert!(objects.by_field(0, "x").is_none());
        objects = objects.indexed_by([0]);
        let before = objects.clone();
        objects.insert(object_of("/p/c", 2, "node=x"));
        objects.insert(object_of("/p/a", 3, "node=y"));
        objects.insert(object_of("/p/b", 4, "node=x;v=2"));
        objects.insert(object_of("/p/d", 5, ""));
        let rows = |objects: &ObjectMap, value: &str| {
            let found = objects.by_field(0, value).unwrap();
            let found = found.iter().map(|key| objects.get(key.as_str()).unwrap());
            found.map(|object| format!("{}@{}", object.key(), object.revision())).collect::<Vec<_>>()
        };
        assert_eq!(rows(&objects, "x"), ["/p/b@4", "/p/c@2"]);
        assert_eq!(rows(&objects, "y"), ["/p/a@3"]);
        assert_eq!(rows(&objects, ""), ["/p/d@5"]);
        assert_eq!(rows(&objects, "z"), [""; 0]);
        assert_eq!(rows(&before, "x"), ["/p/a@1", "/p/b@1"]);
        for key in ["/p/a", "/p/b", "/p/c", "/p/d", "/p/none"] {
            objects.remove(key);
        }
        assert_eq!(objects.len(), 0);
        assert_eq!(objects.by_field.as_ref().unwrap()[0].values.keys(), 0);
        assert!(objects.by_field(1, "x").is_none());
    }

    #[test]
    fn an_index_of_a_label_has_the_objects_of_each_value() {
        let label = |name: &str, value: &str| Label { name: name.into(), value: value.into() };
        let mut objects: ObjectMap = (0..100)
            .map(|number| {
                object_of(&format!("/p/{number:02}"), 1, &format!("l:app={};l:tier=web", number % 50))
            })
            .collect();
        for name in ["app", "tier"] {
            let mut index = LabelIndex::new(name.into());
            objects.by_key().iter().for_each(|object| index.add(object));
            assert_eq!(index.selects_few(objects.len()), name == "app");
            objects.add_label_index(index);
        }
        let before = objects.clone();
        objects.insert(object_of("/p/new", 2, "l:app=1"));
        objects.insert(object_of("/p/00", 3, "l:app=1"));
        objects.insert(object_of("/p/01", 4, ""));
        objects.insert(object_of("/p/51", 5, "l:app=1;l:tier=web;v=2"));
        let keys = |objects: &ObjectMap, labels: &[Label]| {
            let keys = objects.by_labels(labels)?.iter().map(|key| key.as_str().to_owned());
            Some(keys.collect::<Vec<_>>())
        };
        assert_eq!(keys(&objects, &[label("app", "1")]).unwrap(), ["/p/00", "/p/51", "/p/new"]);
        assert_eq!(keys(&objects, &[label("app", "0")]).unwrap(), ["/p/50"]);
        assert_eq!(keys(&objects, &[label("app", "x")]).unwrap(), [""; 0]);
        // Of several labels, the one with the fewest objects counts; too many are none.
        let both = [label("tier", "web"), label("app", "1"), label("other", "")];
        assert_eq!(keys(&objects, &both).unwrap().len(), 3);
        assert_eq!(keys(&objects, &[label("tier", "web")]), None);
        assert_eq!(keys(&objects, &[label("other", "")]), None);
        assert_eq!(keys(&before, &[label("app", "1")]).unwrap(), ["/p/01", "/p/51"]);
        objects.drop_label_index("tier");
        let bytes = objects.label_index_bytes();
        assert!((50 * 160..50 * 300).contains(&bytes), "{bytes}");
        for number in 0..100 {
            objects.remove(&format!("/p/{number:02}"));
        }
        objects.remove("/p/new");
        assert_eq!(objects.label_index_bytes(), 0);
        objects.drop_label_index("app");
        assert_eq!(keys(&objects, &[label("app", "1")]), None);
    }
}
