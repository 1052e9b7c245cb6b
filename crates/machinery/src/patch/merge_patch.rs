//! JSON merge patch (RFC 7386).

use super::PatchError;
use crate::options::FieldValidation;
use crate::text::go_json_type;
use crate::{Map, Value};

/// Merges the patch into the document. `null` removes a member; lists are replaced as a whole.
///
/// A patch that is not an object is an error, except a list when field validation is `Ignore`: it replaces the
/// document, and decoding then rejects it.
///
/// # Errors
/// [`PatchError::BadRequest`], when the patch is not an object.
pub fn apply(document: Value, patch: Value, validation: FieldValidation) -> Result<Value, PatchError> {
    let invalid = || PatchError::BadRequest("Invalid JSON Patch".to_owned());
    match (document, patch) {
        (_, Value::Null) => Err(invalid()),
        (Value::Object(mut document), Value::Object(patch)) => {
            merge(&mut document, patch);
            Ok(Value::Object(document))
        }
        (_, mut patch @ Value::Object(_)) => {
            prune_nulls(&mut patch);
            Ok(patch)
        }
        (_, patch) if validation != FieldValidation::Ignore => Err(PatchError::BadRequest(format!(
            "error decoding patch: json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            go_json_type(&patch)
        ))),
        (_, mut patch @ Value::Array(_)) => {
            prune_nulls(&mut patch);
            Ok(patch)
        }
        _ => Err(invalid()),
    }
}

fn merge(document: &mut Map, patch: Map) {
    for (name, mut value) in patch {
        if value.is_null() {
            document.remove(&name);
            continue;
        }
        match (document.get_mut(&name), value) {
            (Some(Value::Object(current)), Value::Object(patch)) => merge(current, patch),
            (Some(current @ Value::Object(_)), replacement) => *current = replacement,
            (_, replacement) => {
                value = replacement;
                prune_nulls(&mut value);
                document.insert(name, value);
            }
        }
    }
}

/// Removes the null members of all objects in the value.
fn prune_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, value| !value.is_null());
            members.values_mut().for_each(prune_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(prune_nulls),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_tree::json;

    #[test]
    fn patches_merge() {
        // The rows of RFC 7386, appendix A, that concern objects, and those the API adds.
        let rows = [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
            (json!({"a": "b"}), json!({"a": null}), json!({})),
            (json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"})),
            (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "c"}), json!({"a": ["b"]}), json!({"a": ["b"]})),
            (json!({"a": {"b": "c"}}), json!({"a": {"b": "d", "c": null}}), json!({"a": {"b": "d"}})),
            (json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]})),
            (json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1})),
            (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
            (json!({}), json!({"a": [{"b": null}, null]}), json!({"a": [{}, null]})),
            (json!({"a": {"b": 1}}), json!({"a": [{"b": null}]}), json!({"a": [{"b": null}]})),
        ];
        for (document, patch, expected) in rows {
            let text = format!("{document} {patch}");
            assert_eq!(apply(document, patch, FieldValidation::Warn), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_object_is_no_patch() {
        let message = |patch, validation| match apply(json!({}), patch, validation) {
            Err(PatchError::BadRequest(message)) => message,
            other => format!("{other:?}"),
        };
        assert_eq!(message(json!(null), FieldValidation::Warn), "Invalid JSON Patch");
        assert_eq!(message(json!("a"), FieldValidation::Ignore), "Invalid JSON Patch");
        assert_eq!(
            message(json!([1]), FieldValidation::Warn),
            "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}"
        );
        assert_eq!(apply(json!({}), json!([1]), FieldValidation::Ignore), Ok(json!([1])));
    }
}
