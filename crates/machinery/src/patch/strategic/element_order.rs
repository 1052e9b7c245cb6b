//! Orders lists. Positions are kept in maps, so that the cost is linear in the length of a list.

use super::directive::{PATCH, SET_ELEMENT_ORDER};
use super::key::{GO_MAP, Key, Positions, bad_type};
use crate::Value;
use crate::patch::PatchError;
use crate::text::go_format;
use std::collections::HashSet;

/// Checks that the items of the patch occur in the order list, in the same order. Deletions may be absent, and so may other
/// directives before the end of the order list.
pub(super) fn check_order(
    patch: &[Value],
    order_list: &[Value],
    merge_key: Option<&str>,
) -> Result<(), PatchError> {
    if patch.is_empty() || order_list.is_empty() {
        return Ok(());
    }
    let mut ordered = order_list.iter();
    let mut exhausted = false;
    for item in patch {
        match (merge_key, item) {
            (Some(_), Value::Object(members)) if members.contains_key(PATCH) => {
                exhausted = ordered.len() == 0 && item.get(PATCH).and_then(Value::as_str) != Some("delete");
                if exhausted {
                    break;
                }
                continue;
            }
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
    Ok(())
}

/// Searches each item in the order list, one item of that after the other, which must be objects up to the item that is
/// found.
pub(super) fn check_found(merged: &[Value], order_list: &[Value], merge_key: &str) -> Result<(), PatchError> {
    let Some(odd) = order_list.iter().position(|item| !item.is_object()) else { return Ok(()) };
    let before = order_list.iter().take(odd);
    let before: HashSet<Key> =
        before.filter_map(|item| item.as_object()?.get(merge_key)).map(Key::of).collect();
    for item in merged {
        if !before.contains(&Key::of_item(item, Some(merge_key))?) {
            return Err(PatchError::Unknown(format!("value for key {odd} is not a map")));
        }
    }
    Ok(())
}

/// Orders a merged list: the patch's items as in the patch, all others as in the stored list. A stored item precedes
/// one of the patch's items only where the stored list has that order.
pub(super) fn order(
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
