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

mod directive;
mod element_order;
mod key;
mod merge;
mod meta;
#[cfg(test)]
mod tests;

use super::PatchError;
use crate::{Map, Value};
use directive::{PATCH, RETAIN_KEYS, SET_ELEMENT_ORDER};
use merge::{discard_nulls, merge_map};
use meta::Meta;
use pintle_schema::SchemaRef;
use std::cell::Cell;

/// The maximum number of list items that one patch visits: many times the number in the largest object and patch.
const MAX_ITEMS: usize = 1024 * 1024;

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

/// A patch as kube-apiserver holds it after the merge, for error messages: values that the object lacks lose their
/// nulls, and merged objects their directives.
pub fn used_patch(patch: &Value, object: &Value) -> Value {
    match (patch, object) {
        (Value::Object(patch), Value::Object(object)) if !patch.contains_key(PATCH) => {
            let members = patch.iter().filter(|(name, _)| *name != RETAIN_KEYS && !is_ordered(patch, name));
            let used = members.map(|(name, value)| {
                let original = object.get(name.as_str()).unwrap_or(&Value::Null);
                (name.clone(), used_patch(value, original))
            });
            Value::Object(used.collect())
        }
        (Value::Array(_), Value::Array(_)) | (Value::Object(_), Value::Object(_)) => patch.clone(),
        (patch, _) => {
            let mut used = patch.clone();
            discard_nulls(&mut used);
            used
        }
    }
}

/// Whether a member of a patch is the order of a list, or a list with an order.
fn is_ordered(patch: &Map, name: &str) -> bool {
    name.starts_with(SET_ELEMENT_ORDER) || patch.contains_key(format!("{SET_ELEMENT_ORDER}/{name}").as_str())
}
