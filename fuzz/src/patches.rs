//! Fuzzes patches of request bodies. The data is two JSON documents with a line feed between them: an object and a
//! patch.

use pintle_machinery::codec::{MAX_DEPTH, json};
use pintle_machinery::options::FieldValidation;
use pintle_machinery::patch::{PatchError, json_patch, merge_patch, strategic};
use pintle_machinery::{Map, Value, tree};
use pintle_schema::Schema;

fn documents(data: &[u8]) -> Option<(Value, Value)> {
    let at = data.iter().position(|byte| *byte == b'\n')?;
    let (document, patch) = data.split_at(at);
    Some((json::decode_any(document).ok()?, json::decode_any(patch).ok()?))
}

/// The maximum number of operations that are also applied one by one.
const FEW_OPERATIONS: usize = 64;

/// A JSON patch fails, or has the same result as its operations one after the other; the result is within the limit of
/// depth.
pub(crate) fn json_patch(data: &[u8]) {
    let Some((document, patch)) = documents(data) else { return };
    for validation in [FieldValidation::Ignore, FieldValidation::Warn] {
        let result = json_patch::apply(document.clone(), &patch, validation);
        assert!(result.as_ref().is_ok_and(is_shallow) || result.is_err());
        let operations = patch.as_array().map(Vec::as_slice).unwrap_or_default();
        if operations.is_empty() && result.is_ok() {
            assert_eq!(result.as_ref(), Ok(&document));
        }
        if matches!(result, Ok(_) | Err(PatchError::Unprocessable(_))) && operations.len() < FEW_OPERATIONS {
            let one_by_one = operations.iter().try_fold(document.clone(), |document, operation| {
                json_patch::apply(document, &Value::Array(vec![operation.clone()]), validation)
            });
            assert_eq!(one_by_one, result);
        }
    }
}

/// A merge patch has the result of RFC 7386, and changes nothing when it is applied again.
pub(crate) fn merge_patch(data: &[u8]) {
    let Some((document, patch)) = documents(data) else { return };
    let Ok(once) = merge_patch::apply(document.clone(), patch.clone(), FieldValidation::Warn) else { return };
    assert!(is_shallow(&once));
    // Nulls inside lists follow the library of Kubernetes.
    if !has_nulls_in_lists(&patch) {
        assert_eq!(once, merged(document, &patch));
    }
    let again = merge_patch::apply(once.clone(), patch, FieldValidation::Warn);
    // The nulls inside a list that replaces an object stay, until they meet a list.
    if !again.as_ref().is_ok_and(|again| has_nulls(again) || has_nulls(&once)) {
        assert_eq!(again, Ok(once));
    }
}

/// The function of RFC 7386, section 2.
fn merged(target: Value, patch: &Value) -> Value {
    let Value::Object(patch) = patch else { return patch.clone() };
    let mut target = match target {
        Value::Object(target) => target,
        _ => Map::new(),
    };
    for (name, value) in patch {
        let old = target.remove(name).unwrap_or_default();
        if !value.is_null() {
            target.insert(name.clone(), merged(old, value));
        }
    }
    Value::Object(target)
}

fn is_shallow(value: &Value) -> bool {
    tree::depth(value) <= MAX_DEPTH
}

fn any(value: &Value, is_it: &impl Fn(&Value) -> bool) -> bool {
    is_it(value)
        || match value {
            Value::Array(items) => items.iter().any(|item| any(item, is_it)),
            Value::Object(members) => members.values().any(|member| any(member, is_it)),
            _ => false,
        }
}

fn has_nulls(value: &Value) -> bool {
    any(value, &Value::is_null)
}

fn has_nulls_in_lists(value: &Value) -> bool {
    any(value, &|value| value.is_array() && has_nulls(value))
}

/// A strategic merge patch of an object of any kind succeeds or returns an error. Without lists and directives it has
/// the result of a merge patch.
pub(crate) fn strategic_patch(data: &[u8]) {
    let Some((document, patch)) = documents(data) else { return };
    let is_directive = |name: &pintle_machinery::Text| name.starts_with('$');
    let is_plain = document.is_object()
        && patch.is_object()
        && !any(&patch, &|value| {
            value.is_array() || value.as_object().is_some_and(|members| members.keys().any(is_directive))
        });
    for (group, kind) in [("", "Pod"), ("", "Service"), ("apps", "Deployment")] {
        let Some(schema) = Schema::builtin().by_kind(group, "v1", kind) else { continue };
        let Ok(result) = strategic::apply(document.clone(), patch.clone(), schema) else { continue };
        assert!(is_shallow(&result));
        if is_plain {
            let merged = merge_patch::apply(document.clone(), patch.clone(), FieldValidation::Warn);
            assert_eq!(merged.as_ref(), Ok(&result));
        }
    }
}
