//! Keeps the empty lists and maps in the metadata of custom resources.

use crate::Value;

/// Restores the empty lists and maps in the metadata of a custom resource: conversions keep them, trees do not. They may
/// have owners.
pub(super) fn keep_empty_metadata(converted: &mut Value, tree: &Value) {
    let Some(metadata) = converted.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    for (name, value) in tree.get("metadata").and_then(Value::as_object).into_iter().flatten() {
        let is_empty = match value {
            Value::Object(members) => members.is_empty(),
            Value::Array(items) => items.is_empty(),
            _ => false,
        };
        if is_empty && !metadata.contains_key(name.as_str()) {
            metadata.insert(name.clone(), value.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    #[test]
    fn empty_metadata_survives_a_conversion() {
        let tree = json!({"metadata": {"name": "a", "labels": {}, "annotations": {}, "finalizers": []}});
        let mut converted = json!({"metadata": {"name": "a", "annotations": {"b": "c"}}});
        keep_empty_metadata(&mut converted, &tree);
        let expected =
            json!({"metadata": {"name": "a", "annotations": {"b": "c"}, "labels": {}, "finalizers": []}});
        assert_eq!(converted, expected);
    }
}
