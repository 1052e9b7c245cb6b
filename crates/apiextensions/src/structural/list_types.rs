//! Validates that lists of type set and map have no duplicates
//! (<https://kubernetes.io/docs/reference/using-api/server-side-apply/#merge-strategy>).

use std::collections::HashMap;

use pintle_machinery::codec::json;
use pintle_machinery::error_list::is_enough;
use pintle_machinery::{ErrorList, FieldError, FieldPath, Map, Value};

use super::arena::Arena;
use super::effort::Effort;
use super::node::{Flags, ListType, Node};
use super::path::Path;

/// Reports each duplicate item once.
pub(super) fn validate(schema: &Arena, object: &Value) -> ErrorList {
    let mut walk = Walk { schema, effort: Effort::new(), errors: ErrorList::new() };
    walk.value(schema.root_node(), object, &Path::ROOT);
    walk.errors.extend(walk.effort.error(&FieldPath::default()));
    walk.errors
}

struct Walk<'s> {
    schema: &'s Arena,
    effort: Effort,
    errors: ErrorList,
}

impl Walk<'_> {
    fn value(&mut self, node: &Node, found: &Value, path: &Path<'_>) {
        if !node.flags.has(Flags::BELOW_LIST_TYPES) || is_enough(&self.errors) {
            return;
        }
        let schema = self.schema;
        match found {
            Value::Array(items) => {
                match node.list_type {
                    ListType::Atomic => {}
                    ListType::Set => {
                        if !items.iter().all(|item| self.effort.spend_comparison(item)) {
                            return;
                        }
                        for index in repeated(items.iter().map(Key::of)) {
                            let item = items.get(index).cloned().unwrap_or_default();
                            self.errors.push(FieldError::duplicate(&path.index(index).to_field_path(), item));
                        }
                    }
                    ListType::Map => self.map(node, items, path),
                }
                if let Some(node) = schema.items(node) {
                    for (index, item) in items.iter().enumerate() {
                        self.value(node, item, &path.index(index));
                    }
                }
            }
            Value::Object(members) => {
                if let Some(node) = schema.additional(node) {
                    for (name, member) in members {
                        self.value(node, member, &path.key(name));
                    }
                }
                if node.properties.len > 0 {
                    for (name, member) in members {
                        if let Some(node) = schema.property(node, name) {
                            self.value(node, member, &path.child(name));
                        }
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn map(&mut self, node: &Node, items: &[Value], path: &Path<'_>) {
        let (schema, errors) = (self.schema, &mut self.errors);
        let wrong = items.iter().position(|item| !item.is_object() && !item.is_null());
        if let Some((index, item)) = wrong.and_then(|index| Some((index, items.get(index)?))) {
            let detail = "must be an object for an array of list-type map";
            errors.push(FieldError::invalid(&path.index(index).to_field_path(), item.clone(), detail));
            return;
        }
        // Each item has all keys, explicit or not.
        if !self.effort.spend(items.len().saturating_mul(KEY_CHECKS * node.list_map_keys.len as usize)) {
            return;
        }
        let keys: Vec<Vec<Option<&Value>>> = items
            .iter()
            .map(|item| schema.strs(node.list_map_keys).map(|name| item.as_object()?.get(name)).collect())
            .collect();
        // A single key is compared as a scalar, several as the JSON of an object with them.
        let key_of = if node.list_map_keys.len == 1 { Key::of } else { Key::within };
        let composed = keys.iter().map(|keys| keys.iter().map(|key| key.map(key_of)).collect::<Vec<_>>());
        for index in repeated(composed) {
            let values = keys.get(index).into_iter().flatten();
            let names = schema.strs(node.list_map_keys);
            let shown: Map = names
                .zip(values)
                .filter_map(|(name, key)| Some((name.to_owned(), (*key)?.clone())))
                .collect();
            errors.push(FieldError::duplicate(&path.index(index).to_field_path(), Value::Object(shown)));
        }
    }
}

/// The number of checks for one key of one item; the cost is mostly memory.
const KEY_CHECKS: usize = 4;

/// The identity of an item: scalars with their types, others by their JSON.
#[derive(PartialEq, Eq, Hash)]
enum Key<'v> {
    Scalar(&'v Value),
    Compound(Vec<u8>),
}

impl<'v> Key<'v> {
    fn of(value: &'v Value) -> Key<'v> {
        match value {
            Value::Array(_) | Value::Object(_) => Key::Compound(json::encode_any(value)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Key::Scalar(value),
        }
    }

    /// The identity of a part of a compound value: integers and floats are the same if their JSON is.
    fn within(value: &'v Value) -> Key<'v> {
        match value {
            Value::Number(_) => Key::Compound(json::encode_any(value)),
            value => Key::of(value),
        }
    }
}

/// The positions of second occurrences.
fn repeated<K: std::hash::Hash + Eq>(keys: impl Iterator<Item = K>) -> Vec<usize> {
    let mut times: HashMap<K, usize> = HashMap::new();
    let second = keys.enumerate().filter_map(|(index, key)| {
        let times = times.entry(key).or_default();
        *times += 1;
        (*times == 2).then_some(index)
    });
    second.collect()
}

#[cfg(test)]
mod tests;
