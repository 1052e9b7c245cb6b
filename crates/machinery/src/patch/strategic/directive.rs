//! The directives of strategic merge patches.

use crate::patch::PatchError;
use crate::text::{go_format, go_string_format};
use crate::{Map, Value};

pub(super) const PATCH: &str = "$patch";
pub(super) const RETAIN_KEYS: &str = "$retainKeys";
pub(super) const DELETE_FROM_PRIMITIVE_LIST: &str = "$deleteFromPrimitiveList";
pub(super) const SET_ELEMENT_ORDER: &str = "$setElementOrder";

/// The field name after the slash of a directive such as `$setElementOrder/ports`.
pub(super) fn directive_target<'a>(name: &'a str, prefix: &str) -> Result<&'a str, PatchError> {
    name.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('/')).ok_or_else(|| {
        PatchError::BadRequest(match prefix {
            DELETE_FROM_PRIMITIVE_LIST => "invalid patch format of primitive list".to_owned(),
            _ => "invalid patch format of setElementOrder list".to_owned(),
        })
    })
}

/// Applies `$retainKeys`: the patch may set only the listed keys, and the original keeps no others.
pub(super) fn retain_keys(original: &mut Map, patch: &mut Map) -> Result<(), PatchError> {
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
pub(super) fn remove_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(members) if members.contains_key(PATCH) => None,
        Value::Object(members) => Some(Value::Object(
            members.into_iter().filter_map(|(name, value)| Some((name, remove_directives(value)?))).collect(),
        )),
        Value::Array(items) => Some(Value::Array(items.into_iter().filter_map(remove_directives).collect())),
        scalar => Some(scalar),
    }
}

pub(super) fn bad_patch_type(directive: &Value, object: &Map) -> PatchError {
    let object = Value::Object(object.clone());
    PatchError::Unknown(format!(
        "unknown patch type: {} in map: {}",
        go_string_format(directive),
        go_format(&object)
    ))
}
