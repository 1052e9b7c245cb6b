//! Merges objects and lists, which contain each other.
//!
//! Items of lists are identified by a [`Key`]: the value of the merge key for objects, the value itself for scalars.

use super::directive::{
    DELETE_FROM_PRIMITIVE_LIST, PATCH, SET_ELEMENT_ORDER, bad_patch_type, directive_target,
    remove_directives, retain_keys,
};
use super::element_order::{check_found, check_order, order};
use super::key::{GO_MAP, Key, Positions, bad_type, into_list, positions};
use super::meta::Meta;
use crate::patch::PatchError;
use crate::text::{go_format, go_type};
use crate::{Map, Text, Value};
use std::collections::HashSet;

pub(super) fn merge_map(mut original: Map, mut patch: Map, meta: Meta<'_>) -> Result<Map, PatchError> {
    if let Some(directive) = patch.get(PATCH) {
        return match directive.as_str() {
            Some("replace") => {
                patch.remove(PATCH);
                Ok(patch)
            }
            Some("delete") => Ok(Map::new()),
            _ => Err(bad_patch_type(directive, &patch)),
        };
    }
    retain_keys(&mut original, &mut patch)?;
    set_element_order(&mut original, &mut patch, meta)?;
    for (name, value) in patch {
        let deleted_from = match name.starts_with(DELETE_FROM_PRIMITIVE_LIST) {
            true => Some(directive_target(&name, DELETE_FROM_PRIMITIVE_LIST)?),
            false => None,
        };
        let is_delete_list = deleted_from.is_some();
        let name = match deleted_from {
            Some(target) if !target.is_empty() => target.into(),
            _ => name,
        };
        if value.is_null() {
            original.remove(&name);
            continue;
        }
        // Go's types have some structs always; the tree leaves them out while they are empty.
        if value.is_object() && !original.contains_key(&name) && meta.has_always(&name) {
            original.insert(name.clone(), Value::Object(Map::new()));
        }
        match (original.get_mut(&name), value) {
            (Some(Value::Object(current)), Value::Object(patch)) => {
                let (meta, field) = meta.field(&name)?;
                let merged = match field.strategy.replace {
                    true => patch,
                    false => merge_map(std::mem::take(current), patch, meta)?,
                };
                original.insert(name, Value::Object(merged));
            }
            (Some(Value::Array(current)), Value::Array(patch)) => {
                let (meta, field) = meta.list_field(&name)?;
                let merged = match field.strategy.merge || is_delete_list {
                    true => {
                        merge_list(std::mem::take(current), patch, meta, field.merge_key, is_delete_list)?
                    }
                    false => patch,
                };
                original.insert(name, Value::Array(merged));
            }
            (_, _) if is_delete_list => {}
            (Some(current), value) if same_scalar_type(current, &value) => *current = value,
            (_, mut value) => {
                discard_nulls(&mut value);
                match remove_directives(value) {
                    Some(value) => original.insert(name, value),
                    None => original.remove(&name),
                };
            }
        }
    }
    Ok(original)
}

/// Merges a list into a stored one; with `is_delete_list`, removes its scalars from the stored one.
fn merge_list(
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
    if !items_are_objects(&original, &patch, meta)? {
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
    let mut original = original;
    // Go's encoder always writes the key.
    for item in original.iter_mut().filter(|item| item.get(merge_key).is_none()) {
        *item = meta.full(item);
    }
    let (mut merged, patch) = apply_special_items(original, patch, merge_key)?;
    let server_key = |item: &Value| item.get(merge_key).map_or_else(|| Key::Other(String::new()), Key::of);
    let server_order = positions(merged.iter().map(server_key));
    let mut added = Positions::new();
    let mut patch_keys = Vec::with_capacity(patch.len());
    for item in patch {
        let Value::Object(item) = item else { return Err(bad_type(GO_MAP, &item)) };
        let key = Key::of_member(&item, merge_key)?;
        let place = server_order.get(&key).or_else(|| added.get(&key));
        match place.and_then(|place| merged.get_mut(*place)) {
            Some(Value::Object(current)) => {
                *current = merge_map(std::mem::take(current), item, meta)?;
            }
            _ => {
                added.insert(key.clone(), merged.len());
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

/// The stored list whose order counts for `$setElementOrder`. The reference merges in the memory of the stored list, so
/// new items take the places that deleted ones leave at its end: `kubectl apply` of another container instead of one puts it behind those
/// that others have added. Further new items have no place.
fn with_reused_places(original: Vec<Value>, patch: &[Value], merge_key: &str) -> Vec<Value> {
    let directive = |item: &Value| item.get(PATCH).and_then(Value::as_str).map(str::to_owned);
    let key = |item: &Value| item.get(merge_key).map(Key::of);
    let is_replaced = patch.iter().any(|item| directive(item).as_deref() == Some("replace"));
    let deletions = patch.iter().filter(|item| directive(item).as_deref() == Some("delete"));
    let deleted: HashSet<Key> = deletions.filter_map(key).collect();
    if is_replaced || deleted.is_empty() {
        return original;
    }
    let places = original.len();
    let mut order = original;
    order.retain(|item| key(item).is_none_or(|key| !deleted.contains(&key)));
    let mut known: HashSet<Key> = order.iter().filter_map(key).collect();
    let added = patch.iter().filter(|item| directive(item).is_none());
    let added = added.filter(|item| key(item).is_some_and(|key| known.insert(key)));
    let free = places - order.len();
    order.extend(added.take(free).cloned());
    order
}

/// Applies all `$setElementOrder` directives, together with the lists they order, and removes both from the patch.
fn set_element_order(original: &mut Map, patch: &mut Map, meta: Meta<'_>) -> Result<(), PatchError> {
    let directives: Vec<Text> =
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
        let lists = [&original_list, &patch_list];
        let has_items = lists.into_iter().flatten().any(|list| !list.is_empty());
        check_order(patch_list.as_deref().unwrap_or_default(), &order_list, merge_key)?;
        let (merged, server_items) = match (original_list, patch_list) {
            (None, None) => continue,
            (Some(original), None) => (original.clone(), original),
            (None, Some(patch)) => {
                let kept = patch.iter().cloned().filter_map(remove_directives).collect();
                items_are_objects(&patch, &[], item_meta)?;
                (kept, Vec::new())
            }
            (Some(original), Some(patch)) => {
                items_are_objects(&original, &patch, item_meta)?;
                match merge_key {
                    _ if !field.strategy.merge => (patch, original),
                    None => (merge_list(original.clone(), patch, item_meta, None, false)?, original),
                    Some(key) => {
                        let order = with_reused_places(original.clone(), &patch, key);
                        (merge_list(original, patch, item_meta, merge_key, false)?, order)
                    }
                }
            }
        };
        if !has_items {
            return Err(PatchError::Unknown("no elements in any of the given slices".to_owned()));
        }
        if let Some(merge_key) = merge_key {
            check_found(&merged, &order_list, merge_key)?;
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
        original.insert(target, Value::Array(ordered));
        patch.remove(target);
    }
    Ok(())
}

/// Whether the items are objects; all must be of one type, which must not be a list.
fn items_are_objects(original: &[Value], patch: &[Value], meta: Meta<'_>) -> Result<bool, PatchError> {
    let mut items = original.iter().chain(patch);
    let Some(first) = items.next() else { return Ok(false) };
    if first.is_array() {
        return Err(PatchError::Unprocessable("lists of lists are not supported".to_owned()));
    }
    if items.any(|item| go_type(item) != go_type(first)) {
        return Err(PatchError::Unknown(format!(
            "list element types are not identical: [{} {}]",
            go_format(&original.iter().map(|item| meta.full(item)).collect()),
            go_format(&Value::Array(patch.to_vec()))
        )));
    }
    Ok(first.is_object())
}

fn same_scalar_type(one: &Value, other: &Value) -> bool {
    !matches!(one, Value::Object(_) | Value::Array(_)) && go_type(one) == go_type(other)
}

/// Removes the null members of all objects in a value.
pub(super) fn discard_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, value| !value.is_null());
            members.values_mut().for_each(discard_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(discard_nulls),
        _ => {}
    }
}
