//! Strategic merge patch
//! (<https://kubernetes.io/docs/tasks/manage-kubernetes-objects/update-api-object-kubectl-patch/>,
//! <https://git.k8s.io/design-proposals-archive/cli/preserve-order-in-strategic-merge-patch.md>).
//!
//! Like a merge patch, but the schema declares how each list is merged, and directives in the patch refine this:
//!
//! | directive | in | does |
//! |---|---|---|
//! | `$patch: replace` | an object | takes the rest of it as it is |
//! | `$patch: delete` | an object | leaves it empty |
//! | `$patch: delete` | an item | drops the item with this merge key |
//! | `$patch: replace` | an item | takes the list's other items as they are |
//! | `$retainKeys` | an object | drops all members but these |
//! | `$deleteFromPrimitiveList/x` | beside list x | drops these values |
//! | `$setElementOrder/x` | beside list x | puts the items in this order |
//!
//! Items of a merged list have the patch's order, then the stored list's; items with no defined order between the two
//! come from the patch first.

mod list;
mod meta;
#[cfg(test)]
mod tests;

use super::PatchError;
use crate::text::{go_format, go_string_format, go_type};
use crate::{Map, Value};
use list::{merge_list, set_element_order};
use meta::Meta;
use pintle_schema::SchemaRef;
use std::cell::Cell;

/// The maximum number of list items that one patch visits: many times the number in the largest object and patch.
const MAX_ITEMS: usize = 1024 * 1024;

const PATCH: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM_PRIMITIVE_LIST: &str = "$deleteFromPrimitiveList";
const SET_ELEMENT_ORDER: &str = "$setElementOrder";

/// Merges the patch into the object by the object's schema.
///
/// # Errors
/// [`PatchError`], when a directive is malformed, the patch does not fit the schema, or a bound is exceeded.
pub fn apply(object: Value, patch: Value, schema: SchemaRef<'_>) -> Result<Value, PatchError> {
    let patch = match patch {
        Value::Object(patch) => patch,
        Value::Null => Map::new(),
        other => {
            return Err(PatchError::BadRequest(format!(
                "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
                crate::text::go_json_type(&other)
            )));
        }
    };
    let object = match object {
        Value::Object(object) => object,
        _ => Map::new(),
    };
    let items_left = Cell::new(MAX_ITEMS);
    merge_map(object, patch, Meta::root(schema, &items_left)).map(Value::Object)
}

fn merge_map(mut original: Map, mut patch: Map, meta: Meta<'_>) -> Result<Map, PatchError> {
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
            Some(target) if !target.is_empty() => target.to_owned(),
            _ => name,
        };
        if value.is_null() {
            original.remove(&name);
            continue;
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

/// The field name after the slash of a directive such as `$setElementOrder/ports`.
fn directive_target<'a>(name: &'a str, prefix: &str) -> Result<&'a str, PatchError> {
    name.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('/')).ok_or_else(|| {
        PatchError::BadRequest(match prefix {
            DELETE_FROM_PRIMITIVE_LIST => "invalid patch format of primitive list".to_owned(),
            _ => "invalid patch format of setElementOrder list".to_owned(),
        })
    })
}

fn same_scalar_type(one: &Value, other: &Value) -> bool {
    !matches!(one, Value::Object(_) | Value::Array(_)) && go_type(one) == go_type(other)
}

/// Applies `$retainKeys`: the patch may set only the listed keys, and the original keeps no others.
fn retain_keys(original: &mut Map, patch: &mut Map) -> Result<(), PatchError> {
    let Some(retained) = patch.remove(RETAIN_KEYS) else { return Ok(()) };
    let malformed = || PatchError::BadRequest("invalid patch format of retainKeys".to_owned());
    let Value::Array(retained) = retained else { return Err(malformed()) };
    let retained: std::collections::HashSet<&str> = retained.iter().filter_map(Value::as_str).collect();
    for (name, value) in patch.iter() {
        let is_directive =
            name.starts_with(DELETE_FROM_PRIMITIVE_LIST) || name.starts_with(SET_ELEMENT_ORDER);
        if !value.is_null() && !is_directive && !retained.contains(name.as_str()) {
            return Err(malformed());
        }
    }
    original.retain(|name, _| retained.contains(name.as_str()));
    Ok(())
}

/// The value without directives. Objects with `$patch` are removed; `None` when the value itself is one.
fn remove_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(members) if members.contains_key(PATCH) => None,
        Value::Object(members) => Some(Value::Object(
            members.into_iter().filter_map(|(name, value)| Some((name, remove_directives(value)?))).collect(),
        )),
        Value::Array(items) => Some(Value::Array(items.into_iter().filter_map(remove_directives).collect())),
        scalar => Some(scalar),
    }
}

fn discard_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, value| !value.is_null());
            members.values_mut().for_each(discard_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(discard_nulls),
        _ => {}
    }
}

fn bad_patch_type(directive: &Value, object: &Map) -> PatchError {
    let object = Value::Object(object.clone());
    PatchError::Unknown(format!(
        "unknown patch type: {} in map: {}",
        go_string_format(directive),
        go_format(&object)
    ))
}

fn no_merge_key(item: &Map, merge_key: &str) -> PatchError {
    let item = go_format(&Value::Object(item.clone()));
    PatchError::Unknown(format!("map: {item} does not contain declared merge key: {merge_key}"))
}

fn bad_type(expected: &str, actual: &Value) -> PatchError {
    PatchError::Unknown(format!("expected a {expected}, but received a {}", go_type(actual)))
}
