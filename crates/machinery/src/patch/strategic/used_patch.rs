//! The rest of a patch after its merge.
//!
//! Kube-apiserver's merge removes parts of the patch, and messages show the rest.

use super::directive::{
    DELETE_FROM_PRIMITIVE_LIST, PATCH, RETAIN_KEYS, SET_ELEMENT_ORDER, remove_directives,
};
use super::key::{Key, positions};
use super::merge::discard_nulls;
use super::meta::is_always_object;
use crate::{Map, Value};
use pintle_schema::{FieldRef, SchemaRef};

/// A patch as kube-apiserver holds it after the merge into `object`, for error messages: values that the object lacks
/// have lost their nulls, and merged objects their directives.
pub fn used_patch(patch: &Value, object: &Value, schema: SchemaRef<'_>) -> Value {
    match (patch, object) {
        (Value::Object(patch), Value::Object(object)) => Value::Object(used_map(patch, object, schema)),
        (patch, _) => patch.clone(),
    }
}

fn used_map(patch: &Map, original: &Map, schema: SchemaRef<'_>) -> Map {
    if let Some(directive) = patch.get(PATCH) {
        let mut used = patch.clone();
        if directive == "replace" {
            used.remove(PATCH);
        }
        return used;
    }
    let members = patch.iter().filter(|(name, _)| *name != RETAIN_KEYS && !is_ordered(patch, name));
    members.map(|(name, value)| (name.clone(), used_member(name, value, original, schema))).collect()
}

/// Whether a member of a patch is the order of a list, or a list with an order.
fn is_ordered(patch: &Map, name: &str) -> bool {
    name.starts_with(SET_ELEMENT_ORDER) || patch.contains_key(format!("{SET_ELEMENT_ORDER}/{name}").as_str())
}

fn used_member(name: &str, value: &Value, original: &Map, schema: SchemaRef<'_>) -> Value {
    let field = schema.field(name);
    let is_replaced = field.is_none_or(|field| field.patch_strategy().replace);
    match (value, original.get(name), field) {
        (Value::Object(patch), Some(Value::Object(current)), Some(field)) if !is_replaced => {
            Value::Object(used_map(patch, current, field.ty()))
        }
        (Value::Object(patch), None, Some(field)) if is_always_object(field) && !is_replaced => {
            Value::Object(used_map(patch, &Map::new(), field.ty()))
        }
        (Value::Array(patch), Some(Value::Array(current)), Some(field)) => {
            Value::Array(used_list(patch, current, field))
        }
        (Value::Object(_), Some(Value::Object(_)), _) | (Value::Array(_), Some(Value::Array(_)), _) => {
            value.clone()
        }
        _ if name.starts_with(DELETE_FROM_PRIMITIVE_LIST) => value.clone(),
        _ => inserted(value.clone()),
    }
}

/// The items that are merged into others have lost their directives, too.
fn used_list(patch: &[Value], original: &[Value], field: FieldRef<'_>) -> Vec<Value> {
    let merge_key = field.patch_merge_key().filter(|_| field.patch_strategy().merge);
    let key = |item: &Value| merge_key.and_then(|merge_key| item.get(merge_key)).map(Key::of);
    let known = positions(original.iter().map(|item| key(item).unwrap_or(Key::Other(String::new()))));
    let used = |item: &Value| {
        let place = key(item).and_then(|key| known.get(&key));
        match (item, place.and_then(|place| original.get(*place))) {
            (Value::Object(members), Some(Value::Object(current))) if !members.contains_key(PATCH) => {
                Value::Object(used_map(members, current, field.ty().item()))
            }
            _ => item.clone(),
        }
    };
    patch.iter().map(used).collect()
}

/// A value that was inserted. Objects with `$patch` are left out of it, and stay in the patch where a list or the patch
/// itself has them.
fn inserted(mut value: Value) -> Value {
    discard_nulls(&mut value);
    let without = |value: Value| remove_directives(value.clone()).unwrap_or(value);
    match value {
        Value::Array(items) => Value::Array(items.into_iter().map(without).collect()),
        value => without(value),
    }
}
