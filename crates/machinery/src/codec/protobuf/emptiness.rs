//! Removes empty lists and maps, which a protobuf message cannot represent.
//!
//! JSON distinguishes `[]` from `null` in a field that is never omitted, and so do sets of owned fields: a client that
//! writes `rules: []` owns the rules. Stored as a message and read again, such a list is `null`.

use crate::Value;
use crate::codec::json::is_zero;
use pintle_schema::{SchemaRef, Type};

/// Brings a decoded tree into the form in which its message would be read: empty lists and maps of declared fields are
/// removed, and structs that become empty too. Visits only types that can hold such fields.
pub fn drop_empty(tree: &mut Value, schema: SchemaRef<'_>) {
    if !schema.tells_empty_from_none() {
        return;
    }
    match (schema.ty(), tree) {
        (Type::Struct, Value::Object(members)) => {
            for field in schema.fields() {
                if field.tells_empty_from_none() && members.get(field.name()).is_some_and(is_empty) {
                    members.remove(field.name());
                } else if field.ty().tells_empty_from_none()
                    && let Some(value) = members.get_mut(field.name())
                {
                    drop_empty(value, field.ty());
                    if !field.is_pointer() && is_zero(value, field.ty()) {
                        members.remove(field.name());
                    }
                }
            }
        }
        (Type::List, Value::Array(items)) => {
            let item = schema.item();
            items.iter_mut().for_each(|value| drop_empty(value, item));
        }
        (Type::Map, Value::Object(members)) => {
            let value = schema.value();
            members.values_mut().for_each(|member| drop_empty(member, value));
        }
        _ => {}
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::drop_empty;
    use pintle_schema::Schema;
    use pintle_tree::json;

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
            ("authentication.k8s.io", "TokenRequest", json!({"spec": {"audiences": []}}), json!({})),
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
