//! Putting in the defaults that a schema declares.

use serde_json::{Map, Value};

use crate::cursor::{FieldRef, SchemaRef};
use crate::node::Type;

/// Puts the schema's defaults into a tree, wherever a field is absent.
///
/// As Go's generated defaulting functions do: below an absent pointer nothing is put in, below an absent
/// struct that is no pointer the defaults of its fields are. A value that is there is never
/// changed, a field that is no pointer counts as absent when it is zero (a canonical tree has no
/// such zeros).
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

fn default_struct(object: &mut Map<String, Value>, schema: SchemaRef<'_>) {
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
            object.insert(field.name().to_owned(), value);
        }
    }
}

/// What a custom resource has as `null` where null is not allowed counts as absent.
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
