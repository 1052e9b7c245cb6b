//! Patches out of bodies. The data is two JSON documents, one after the other: an object and a patch.

use pintle_machinery::Value;
use pintle_machinery::options::FieldValidation;
use pintle_machinery::patch::{json_patch, merge_patch, strategic};
use pintle_schema::Schema;

fn documents(data: &[u8]) -> Option<(Value, Value)> {
    let mut documents = serde_json::Deserializer::from_slice(data).into_iter::<Value>();
    Some((documents.next()?.ok()?, documents.next()?.ok()?))
}

/// A JSON patch applies or says why not, and an untouched document is the same.
pub(crate) fn json_patch(data: &[u8]) {
    let Some((document, patch)) = documents(data) else { return };
    for validation in [FieldValidation::Ignore, FieldValidation::Warn] {
        let result = json_patch::apply(document.clone(), &patch, validation);
        if patch.as_array().is_some_and(Vec::is_empty) {
            assert_eq!(result.as_ref(), Ok(&document));
        }
    }
    json_patch::unknown_fields(&patch);
}

/// A merge patch that applies changes nothing when it is applied again.
pub(crate) fn merge_patch(data: &[u8]) {
    let Some((document, patch)) = documents(data) else { return };
    if let Ok(once) = merge_patch::apply(document, patch.clone(), FieldValidation::Warn) {
        let again = merge_patch::apply(once.clone(), patch, FieldValidation::Warn);
        // The nulls inside a list that replaces an object stay, until they meet a list.
        if !again.as_ref().is_ok_and(|again| has_nulls(again) || has_nulls(&once)) {
            assert_eq!(again, Ok(once));
        }
    }
}

fn has_nulls(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.iter().any(has_nulls),
        Value::Object(members) => members.values().any(has_nulls),
        _ => false,
    }
}

/// A strategic merge patch applies or says why not, to objects of any kind.
pub(crate) fn strategic_patch(data: &[u8]) {
    let Some((document, patch)) = documents(data) else { return };
    for (group, kind) in [("", "Pod"), ("", "Service"), ("apps", "Deployment")] {
        let Some(schema) = Schema::builtin().by_kind(group, "v1", kind) else { continue };
        let _ = strategic::apply(document.clone(), patch.clone(), schema);
    }
}
