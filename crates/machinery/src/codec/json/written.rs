//! The fields that Go's encoder always writes.

use super::any::decode_raw;
use super::encode::zero_json;
use crate::Status;
use pintle_schema::{FieldRef, SchemaRef, Type};
use pintle_tree::Value;
use std::borrow::Cow;

/// The maximum number of values that are added to a tree. A body may have very many objects without any member, and each
/// may have more values added than it weighs.
const MAX_ADDED: usize = 30_000;

/// More values would be added than the limit.
struct TooMany;

/// Returns a canonical tree with the fields that Go's encoder always writes, such as an empty `status`. Expressions read
/// objects in this form. A tree that has them all is borrowed.
///
/// # Errors
/// `RequestEntityTooLarge` if more than 30,000 values are missing: no expression may take a tree for one without them.
pub fn with_written_fields<'v>(tree: &'v Value, schema: SchemaRef<'_>) -> Result<Cow<'v, Value>, Status> {
    if !lacks_some(tree, schema) {
        return Ok(Cow::Borrowed(tree));
    }
    let mut tree = tree.clone();
    match add(&mut tree, schema, &mut { MAX_ADDED }) {
        Ok(()) => Ok(Cow::Owned(tree)),
        Err(TooMany) => Err(Status::request_entity_too_large(&format!(
            "the object lacks more than {MAX_ADDED} values that its type always has"
        ))),
    }
}

/// The schema of the alternative of a union that a value has; any other schema itself.
fn alternative<'s>(value: &Value, schema: SchemaRef<'s>) -> SchemaRef<'s> {
    match (schema.ty(), value) {
        (Type::Union(_), Value::Object(_)) => schema.union().map_or(schema, |(_, inner, _)| inner),
        (Type::Union(_), Value::Array(_)) => schema.union().map_or(schema, |(_, _, other)| other),
        _ => schema,
    }
}

fn lacks_some(value: &Value, schema: SchemaRef<'_>) -> bool {
    let schema = alternative(value, schema);
    match (schema.ty(), value) {
        (Type::Struct, Value::Object(object)) if schema.is_declared() => {
            let is_absent = |field: FieldRef<'_>| !object.contains_key(field.name());
            schema.always_written().filter_map(|index| schema.field_at(index)).any(is_absent)
                || object.iter().any(|(name, value)| {
                    // Most members are neither, and need not be looked up.
                    (value.is_object() || value.is_array())
                        && schema.field(name).is_some_and(|field| lacks_some(value, field.ty()))
                })
        }
        (Type::List, Value::Array(items)) => items.iter().any(|item| lacks_some(item, schema.item())),
        (Type::Map, Value::Object(object)) => object.values().any(|value| lacks_some(value, schema.value())),
        _ => false,
    }
}

fn add(value: &mut Value, schema: SchemaRef<'_>, left: &mut usize) -> Result<(), TooMany> {
    let schema = alternative(value, schema);
    match (schema.ty(), value) {
        (Type::Struct, Value::Object(object)) if schema.is_declared() => {
            for (name, value) in object.iter_mut() {
                if let Some(field) = schema.field(name) {
                    add(value, field.ty(), left)?;
                }
            }
            for field in schema.always_written().filter_map(|index| schema.field_at(index)) {
                if object.contains_key(field.name()) {
                    continue;
                }
                let zero = zero(field);
                *left = left.checked_sub(values(&zero)).ok_or(TooMany)?;
                object.insert(field.name(), zero);
            }
        }
        (Type::List, Value::Array(items)) => {
            for item in items {
                add(item, schema.item(), left)?;
            }
        }
        (Type::Map, Value::Object(object)) => {
            for (_, value) in object.iter_mut() {
                add(value, schema.value(), left)?;
            }
        }
        _ => {}
    }
    Ok(())
}

/// The number of values in a tree.
fn values(value: &Value) -> usize {
    match value {
        Value::Object(object) => 1 + object.values().map(values).sum::<usize>(),
        Value::Array(items) => 1 + items.iter().map(values).sum::<usize>(),
        _ => 1,
    }
}

fn zero(field: FieldRef<'_>) -> Value {
    match field.is_pointer() {
        true => Value::Null,
        false => decode_raw(&zero_json(field.ty())).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::json::to_value;
    use pintle_schema::Schema;
    use pintle_tree::json;

    #[test]
    fn the_fields_are_those_of_the_encoder() {
        let check = |group: &str, version: &str, kind: &str, tree: Value| {
            let schema = Schema::builtin().by_kind(group, version, kind).unwrap();
            let written = with_written_fields(&tree, schema).unwrap();
            assert_eq!(*written, to_value(&tree, schema), "{tree}");
            assert!(matches!(with_written_fields(&written, schema), Ok(Cow::Borrowed(_))), "{written}");
        };
        check("", "v1", "Pod", json!({}));
        let volumes = json!([{"name": "v", "emptyDir": {}}]);
        check("", "v1", "Pod", json!({"spec": {"containers": [{"name": "c"}], "volumes": volumes}}));
        check("", "v1", "Event", json!({"metadata": {"name": "e"}}));
        check("", "v1", "ConfigMap", json!({"metadata": {}, "data": {"a": "b"}}));
        check("batch", "v1", "CronJob", json!({"spec": {"jobTemplate": {"spec": {"template": {}}}}}));
        check("policy", "v1", "PodDisruptionBudget", json!({"spec": {"minAvailable": 1}}));
        check("rbac.authorization.k8s.io", "v1", "Role", json!({}));
        check("networking.k8s.io", "v1", "Ingress", json!({"spec": {"rules": [{"http": {}}]}}));
        check("resource.k8s.io", "v1", "ResourceSlice", json!({"spec": {"devices": [{"name": "d"}]}}));
        check(
            "apiextensions.k8s.io",
            "v1",
            "CustomResourceDefinition",
            json!({"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": {"items": {"type": "string"}}}}]}}),
        );
    }

    #[test]
    fn the_fields_of_many_empty_structs_are_bounded() {
        let schema = Schema::builtin().by_kind("", "v1", "Pod").unwrap();
        let of = |count: usize| json!({"spec": {}, "status": {"containerStatuses": vec![json!({}); count]}});
        let (few, many) = (of(1_000), of(100_000));
        let written = with_written_fields(&few, schema).unwrap();
        assert_eq!(*written, to_value(&few, schema));
        assert_eq!(with_written_fields(&many, schema).unwrap_err().code, 413);
    }
}
