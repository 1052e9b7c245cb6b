//! What a message does not keep: that a list or a map is there, but has nothing in it.
//!
//! JSON tells `[]` from `null` where a field is never left out, and so do the sets of owned fields: who writes
//! `rules: []` owns the rules. Once stored as a message and read again, such a list is `null`.

use crate::{Map, Value};
use pintle_schema::{SchemaRef, Type};

/// Makes of a tree what its message would be read as: empty lists and maps of declared fields are gone.
pub fn drop_empty(tree: &mut Value, schema: SchemaRef<'_>) {
    if has_empty(tree) {
        drop_below(tree, schema);
    }
}

/// Whether a tree has anything that is empty, which few have. Sets of owned fields are full of empty maps and have
/// nothing else.
fn has_empty(tree: &Value) -> bool {
    match tree {
        Value::Array(items) => items.is_empty() || items.iter().any(has_empty),
        Value::Object(members) => {
            members.is_empty()
                || members.iter().any(|(name, value)| name != "managedFields" && has_empty(value))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Goes as deep as a decoded tree is.
fn drop_below(tree: &mut Value, schema: SchemaRef<'_>) {
    match (schema.ty(), tree) {
        (Type::Struct, Value::Object(members)) if schema.is_declared() => {
            members.retain(|name, value| {
                let Some(field) = schema.field(name) else { return true };
                let is_empty = match field.ty().ty() {
                    Type::List => value.as_array().is_some_and(Vec::is_empty),
                    Type::Map => value.as_object().is_some_and(Map::is_empty),
                    _ => false,
                };
                let kept = field.is_pointer() || !is_empty;
                if kept {
                    drop_below(value, field.ty());
                }
                kept
            });
        }
        (Type::List, Value::Array(items)) => {
            let item = schema.item();
            items.iter_mut().for_each(|value| drop_below(value, item));
        }
        (Type::Map, Value::Object(members)) => {
            let value = schema.value();
            members.values_mut().for_each(|member| drop_below(member, value));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::drop_empty;
    use pintle_schema::Schema;
    use serde_json::json;

    #[test]
    fn empty_lists_of_fields_go_and_other_empty_values_stay() {
        let cases = [
            ("rbac.authorization.k8s.io", "ClusterRole", json!({"rules": []}), json!({})),
            (
                "rbac.authorization.k8s.io",
                "ClusterRole",
                json!({"rules": [{"verbs": [], "apiGroups": ["a"]}]}),
                json!({"rules": [{"apiGroups": ["a"]}]}),
            ),
            (
                "discovery.k8s.io",
                "EndpointSlice",
                json!({"endpoints": [{"addresses": ["a"], "conditions": {}}], "ports": []}),
                json!({"endpoints": [{"addresses": ["a"], "conditions": {}}]}),
            ),
            (
                "apps",
                "ControllerRevision",
                json!({"data": {"list": [], "map": {}}}),
                json!({"data": {"list": [], "map": {}}}),
            ),
        ];
        for (group, kind, mut tree, expected) in cases {
            drop_empty(&mut tree, Schema::builtin().by_kind(group, "v1", kind).unwrap());
            assert_eq!(tree, expected, "{kind}");
        }
    }
}
