//! The keys of list items.

use crate::patch::PatchError;
use crate::text::{go_format, go_type_string};
use crate::{Map, Text, Value};
use std::collections::HashMap;

pub(super) const GO_MAP: &str = "map[string]interface {}";
pub(super) const GO_LIST: &str = "[]interface {}";

/// The identity of an item. Nearly all keys are texts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Key {
    Text(Text),
    Other(String),
}

impl Key {
    pub(super) fn of(value: &Value) -> Key {
        match value {
            Value::String(text) => Key::Text(text.clone()),
            other => Key::Other(other.to_string()),
        }
    }

    /// The key of a list's item; an object must have the merge key.
    pub(super) fn of_item(item: &Value, merge_key: Option<&str>) -> Result<Key, PatchError> {
        let Some(merge_key) = merge_key else { return Ok(Key::of(item)) };
        let Value::Object(members) = item else { return Err(bad_type(GO_MAP, item)) };
        Key::of_member(members, merge_key)
    }

    pub(super) fn of_member(members: &Map, merge_key: &str) -> Result<Key, PatchError> {
        members.get(merge_key).map(Key::of).ok_or_else(|| no_merge_key(members, merge_key))
    }
}

/// The first position of each key in a list.
pub(super) type Positions = HashMap<Key, usize>;

pub(super) fn positions(keys: impl Iterator<Item = Key>) -> Positions {
    let mut positions = Positions::with_capacity(keys.size_hint().0);
    for (position, key) in keys.enumerate() {
        positions.entry(key).or_insert(position);
    }
    positions
}

pub(super) fn into_list(value: Value) -> Result<Vec<Value>, PatchError> {
    match value {
        Value::Array(items) => Ok(items),
        other => Err(bad_type(GO_LIST, &other)),
    }
}

fn no_merge_key(item: &Map, merge_key: &str) -> PatchError {
    let item = go_format(&Value::Object(item.clone()));
    PatchError::Unknown(format!("map: {item} does not contain declared merge key: {merge_key}"))
}

pub(super) fn bad_type(expected: &str, actual: &Value) -> PatchError {
    PatchError::Unknown(format!("expected a {expected}, but received a {}", go_type_string(actual)))
}
