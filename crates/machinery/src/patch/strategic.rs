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
mod used_patch;

use super::PatchError;
use crate::{Map, Value};
use merge::merge_map;
use meta::Meta;
use pintle_schema::SchemaRef;
use std::cell::Cell;
pub use used_patch::used_patch;

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
