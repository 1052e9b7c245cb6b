//! Merges and orders lists.
//!
//! Items are identified by a [`Key`]: the value of the merge key for objects, the value itself for scalars. Positions
//! are kept in maps, so that the cost is linear in the length of a list.

use super::meta::Meta;
use super::{
    PATCH, SET_ELEMENT_ORDER, bad_patch_type, bad_type, directive_target, no_merge_key, remove_directives,
};
use crate::patch::PatchError;
use crate::text::{go_format, go_type};
use crate::{Map, Value};
use std::collections::{HashMap, HashSet};

const GO_MAP: &str = "map[string]interface {}";
const GO_LIST: &str = "[]interface {}";

/// The identity of an item. Nearly all keys are texts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Key {
    Text(String),
    Other(String),
}

impl Key {
    fn of(value: &Value) -> Key {
        match value {
            Value::String(text) => Key::Text(text.clone()),
            other => Key::Other(other.to_string()),
        }
    }

    /// The key of a list's item; an object must have the merge key.
    fn of_item(item: &Value, merge_key: Option<&str>) -> Result<Key, PatchError> {
        let Some(merge_key) = merge_key else { return Ok(Key::of(item)) };
        let Value::Object(members) = item else { return Err(bad_type(GO_MAP, item)) };
        Key::of_member(members, merge_key)
    }

    fn of_member(members: &Map, merge_key: &str) -> Result<Key, PatchError> {
        members.get(merge_key).map(Key::of).ok_or_else(|| no_merge_key(members, merge_key))
    }
}

/// The first position of each key in a list.
type Positions = HashMap<Key, usize>;

fn positions(keys: impl Iterator<Item = Key>) -> Positions {
    let mut positions = Positions::new();
    for (position, key) in keys.enumerate() {
        positions.entry(key).or_insert(position);
    }
    positions
}

/// Merges a list into a stored one; with `is_delete_list`, removes its scalars from the stored one.
pub(super) fn merge_list(
    original: Vec<Value>,
    patch: Vec<Value>,
    meta: Meta<'_>,
    merge_key: Option<&str>,
    is_delete_list: bool,
) -> Result<Vec<Value>, PatchError> {
    if original.is_empty() && patch.is_empty() {
        return Ok(original);
    }
    meta.count_items(original.len() + patch.len())?;
    if !items_are_objects(&original, &patch)? {
        if is_delete_list {
            let deleted: HashSet<Key> = patch.iter().map(Key::of).collect();
            return Ok(original.into_iter().filter(|item| !deleted.contains(&Key::of(item))).collect());
        }
        let server_order = positions(original.iter().map(Key::of));
        let patch_order = positions(patch.iter().map(Key::of));
        let mut seen = HashSet::new();
        let merged = original.into_iter().chain(patch).filter(|item| seen.insert(Key::of(item))).collect();
        return order(merged, &patch_order, &server_order, None);
    }
    let Some(merge_key) = merge_key else {
        return Err(PatchError::Unknown(format!("cannot merge lists without merge key for {}", meta.kind())));
    };
    let (mut merged, patch) = apply_special_items(original, patch, merge_key)?;
    let server_keys: Vec<Option<Key>> = merged.iter().map(|item| item.get(merge_key).map(Key::of)).collect();
    let server_order = positions(server_keys.into_iter().map(|key| key.unwrap_or(Key::Other(String::new()))));
    let mut places = server_order.clone();
    let mut patch_keys = Vec::with_capacity(patch.len());
    for item in patch {
        let Value::Object(item) = item else { return Err(bad_type(GO_MAP, &item)) };
        let key = Key::of_member(&item, merge_key)?;
        match places.get(&key).and_then(|place| merged.get_mut(*place)) {
            Some(Value::Object(current)) => {
                *current = super::merge_map(std::mem::take(current), item, meta)?;
            }
            _ => {
                places.insert(key.clone(), merged.len());
                merged.push(Value::Object(item));
            }
        }
        patch_keys.push(key);
    }
    order(merged, &positions(patch_keys.into_iter()), &server_order, Some(merge_key))
}

/// Applies the items that are directives; returns the rest of the stored list and of the patch.
fn apply_special_items(
    mut original: Vec<Value>,
    patch: Vec<Value>,
    merge_key: &str,
) -> Result<(Vec<Value>, Vec<Value>), PatchError> {
    let mut rest = Vec::with_capacity(patch.len());
    let mut deleted = HashSet::new();
    let mut replace = false;
    for item in patch {
        let (Some(directive), Value::Object(members)) = (item.get(PATCH), &item) else {
            rest.push(item);
            continue;
        };
        match directive.as_str() {
            Some("delete") => {
                deleted.insert(Key::of_member(members, merge_key)?);
            }
            Some("replace") => replace = true,
            Some("merge") => {
                let message = "merging lists cannot yet be specified in the patch";
                return Err(PatchError::Unknown(message.to_owned()));
            }
            _ => return Err(bad_patch_type(directive, members)),
        }
    }
    if replace {
        return Ok((rest, Vec::new()));
    }
    if !deleted.is_empty() {
        original.retain(|item| !item.get(merge_key).is_some_and(|key| deleted.contains(&Key::of(key))));
    }
    Ok((original, rest))
}

/// Applies all `$setElementOrder` directives, together with the lists they order, and removes both from the patch.
pub(super) fn set_element_order(
    original: &mut Map,
    patch: &mut Map,
    meta: Meta<'_>,
) -> Result<(), PatchError> {
    let directives: Vec<String> =
        patch.keys().filter(|name| name.starts_with(SET_ELEMENT_ORDER)).cloned().collect();
    for name in directives {
        let Some(order_list) = patch.remove(&name) else { continue };
        let order_list = into_list(order_list)?;
        let target = directive_target(&name, SET_ELEMENT_ORDER)?;
        let count = |object: &Map| object.get(target).and_then(Value::as_array).map_or(0, Vec::len);
        meta.count_items(order_list.len() + count(original) + count(patch))?;
        let original_list = original.get(target).cloned().map(into_list).transpose()?;
        let patch_list = patch.get(target).cloned().map(into_list).transpose()?;
        let (item_meta, field) = meta.list_field(target)?;
        let merge_key = field.merge_key;
        check_order(patch_list.as_deref().unwrap_or_default(), &order_list, merge_key)?;
        // The order of the stored list excludes the items that the patch deletes, as in the merge itself.
        let (merged, server_items) = match (original_list, patch_list) {
            (None, None) => continue,
            (Some(original), None) => (original.clone(), original),
            (None, Some(patch)) => {
                let kept = patch.iter().cloned().filter_map(remove_directives).collect();
                items_are_objects(&patch, &[])?;
                (kept, Vec::new())
            }
            (Some(original), Some(patch)) => {
                items_are_objects(&original, &patch)?;
                let merged = match field.strategy.merge {
                    true => merge_list(original.clone(), patch, item_meta, merge_key, false)?,
                    false => patch,
                };
                (merged, original)
            }
        };
        if merged.is_empty() && server_items.is_empty() {
            return Err(PatchError::Unknown("no elements in any of the given slices".to_owned()));
        }
        let order_keys: Result<Vec<Key>, PatchError> =
            order_list.iter().map(|item| Key::of_item(item, merge_key)).collect();
        let server_keys: Result<Vec<Key>, PatchError> =
            server_items.iter().map(|item| Key::of_item(item, merge_key)).collect();
        let ordered = order(
            merged,
            &positions(order_keys?.into_iter()),
            &positions(server_keys?.into_iter()),
            merge_key,
        )?;
        original.insert(target.to_owned(), Value::Array(ordered));
        patch.remove(target);
    }
    Ok(())
}

fn into_list(value: Value) -> Result<Vec<Value>, PatchError> {
    match value {
        Value::Array(items) => Ok(items),
        other => Err(bad_type(GO_LIST, &other)),
    }
}

/// Checks that the items of the patch occur in the order list, in the same order; deletions may be absent.
fn check_order(patch: &[Value], order_list: &[Value], merge_key: Option<&str>) -> Result<(), PatchError> {
    if patch.is_empty() || order_list.is_empty() {
        return Ok(());
    }
    let mut ordered = order_list.iter();
    let mut exhausted = false;
    for item in patch {
        match (merge_key, item) {
            (Some(_), Value::Object(members)) if members.contains_key(PATCH) => continue,
            (Some(_), Value::Object(_)) | (None, _) => {}
            (Some(_), other) => return Err(bad_type(GO_MAP, other)),
        }
        let key = Key::of_item(item, merge_key);
        loop {
            let Some(candidate) = ordered.next() else {
                exhausted = true;
                break;
            };
            if Key::of_item(candidate, merge_key)? == key.clone()? {
                break;
            }
        }
        if exhausted {
            return Err(PatchError::Unknown(format!(
                "The order in patch list:\n{}\n doesn't match {SET_ELEMENT_ORDER} list:\n{}\n",
                go_format(&Value::Array(patch.to_vec())),
                go_format(&Value::Array(order_list.to_vec()))
            )));
        }
    }
    Ok(())
}

/// Orders a merged list: the patch's items as in the patch, all others as in the stored list. A stored item precedes
/// one of the patch's items only where the stored list has that order.
fn order(
    merged: Vec<Value>,
    patch_order: &Positions,
    server_order: &Positions,
    merge_key: Option<&str>,
) -> Result<Vec<Value>, PatchError> {
    let mut patch_items: Vec<(Option<usize>, usize, Value)> = Vec::new();
    let mut server_items: Vec<(Option<usize>, Value)> = Vec::new();
    for item in merged {
        let key = Key::of_item(&item, merge_key)?;
        let server_place = server_order.get(&key).copied();
        match patch_order.get(&key) {
            Some(place) => patch_items.push((server_place, *place, item)),
            None => server_items.push((server_place, item)),
        }
    }
    patch_items.sort_by_key(|(_, place, _)| *place);
    server_items.sort_by_key(|(place, _)| place.unwrap_or(usize::MAX));
    let mut ordered = Vec::with_capacity(patch_items.len() + server_items.len());
    let mut server_items = server_items.into_iter().peekable();
    for (place, _, item) in patch_items {
        while let Some((_, server_item)) = server_items.next_if(|(server_place, _)| {
            matches!((server_place, place), (Some(server_place), Some(place)) if *server_place < place)
        }) {
            ordered.push(server_item);
        }
        ordered.push(item);
    }
    ordered.extend(server_items.map(|(_, item)| item));
    Ok(ordered)
}

/// Whether the items are objects; all must be of one type, which must not be a list.
fn items_are_objects(original: &[Value], patch: &[Value]) -> Result<bool, PatchError> {
    let mut items = original.iter().chain(patch);
    let Some(first) = items.next() else { return Ok(false) };
    if first.is_array() {
        return Err(PatchError::Unprocessable("lists of lists are not supported".to_owned()));
    }
    if items.any(|item| go_type(item) != go_type(first)) {
        let list = |items: &[Value]| go_format(&Value::Array(items.to_vec()));
        return Err(PatchError::Unknown(format!(
            "list element types are not identical: [{} {}]",
            list(original),
            list(patch)
        )));
    }
    Ok(first.is_object())
}
