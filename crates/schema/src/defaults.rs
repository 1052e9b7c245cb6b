//! Applies the defaults that a schema declares.

use pintle_tree::{Map, Value};

use crate::cursor::{FieldRef, SchemaRef};
use crate::node::Type;

/// Applies the schema's defaults to the absent fields of a tree.
///
/// The rules are those of Go's generated defaulting functions. Nothing is added below an absent pointer; an absent
/// struct that is not a pointer gets the defaults of its fields. Present values never change. A zero value in a field
/// that is not a pointer counts as absent (a canonical tree has no such zeros).
pub fn default_by_schema(value: &mut Value, schema: SchemaRef<'_>) {
    if !schema.has_defaults() {
        return;
    }
    match (schema.ty(), value) {
        (Type::Struct, Value::Object(object)) => default_struct(object, schema),
        (Type::List, Value::Array(items)) => {
            for item in items {
                default_nullable(item, schema.item());
            }
        }
        (Type::Map, Value::Object(object)) => {
            for value in object.values_mut() {
                default_nullable(value, schema.value());
            }
        }
        _ => {}
    }
}

fn default_struct(object: &mut Map, schema: SchemaRef<'_>) {
    for field in schema.fields() {
        if field.default().is_none() && !field.ty().has_defaults() {
            continue;
        }
        if let Some(value) = object.get_mut(field.name()) {
            default_nullable(value, field.ty());
            if !value.is_null() {
                continue;
            }
        }
        if let Some(value) = absent(field, schema.is_declared()) {
            object.insert(field.name(), value);
        }
    }
}

/// Replaces `null` by the default where a custom resource does not allow null.
fn default_nullable(value: &mut Value, schema: SchemaRef<'_>) {
    if let (Value::Null, Some(structural)) = (&*value, schema.structural())
        && !structural.nullable
        && let Some(default) = &structural.default
    {
        *value = default.clone();
    }
    default_by_schema(value, schema);
}

fn absent(field: FieldRef<'_>, declared: bool) -> Option<Value> {
    if let Some(default) = field.default() {
        if declared && !field.is_pointer() && is_zero(default) {
            return None;
        }
        let mut value = default.clone();
        default_by_schema(&mut value, field.ty());
        return Some(value);
    }
    if !declared || field.is_pointer() || field.ty().ty() != Type::Struct {
        return None;
    }
    let mut object = Map::new();
    default_struct(&mut object, field.ty());
    (!object.is_empty()).then_some(Value::Object(object))
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(object) => object.is_empty(),
    }
}

#[cfg(test)]
mod tests;
