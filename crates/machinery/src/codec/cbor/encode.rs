//! Encodes trees.

use pintle_go_forms::base64;
use pintle_schema::{FieldRef, SchemaRef, Type, Union};
use pintle_tree::{Map, Text, Value};

use super::{PREFIX, write};
use crate::codec::json::{decode_raw, leaves_out};

/// Encodes an object as a body, behind the tag of self-described CBOR.
pub fn encode(value: &Value, schema: SchemaRef<'_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(1024);
    out.extend_from_slice(PREFIX);
    write_value(&mut out, value, schema);
    out
}

/// Encodes a value without a schema as a body.
pub fn encode_any(value: &Value) -> Vec<u8> {
    let mut out = PREFIX.to_vec();
    write_any(&mut out, value);
    out
}

/// Appends a value without a schema.
pub(super) fn write_any(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Null => write::null(out),
        Value::Bool(value) => write::bool(out, *value),
        Value::Number(number) => write::number(out, number),
        Value::String(text) => write::bytes(out, text.as_bytes()),
        Value::Array(items) => {
            write::array(out, items.len());
            items.iter().for_each(|item| write_any(out, item));
        }
        Value::Object(object) => write_members(out, object, |out, _, value| write_any(out, value)),
    }
}

/// Appends a value in the form of its type.
pub(super) fn write_value(out: &mut Vec<u8>, value: &Value, schema: SchemaRef<'_>) {
    match (schema.ty(), value) {
        (Type::Struct, Value::Object(object)) if schema.is_declared() => {
            write_struct(out, Some(object), schema);
        }
        (Type::Struct, Value::Object(object)) => {
            write_members(out, object, |out, key, value| match schema.field(key) {
                Some(field) => write_value(out, value, field.ty()),
                None => write_any(out, value),
            });
        }
        (Type::List, Value::Array(items)) => {
            write::array(out, items.len());
            items.iter().for_each(|item| write_value(out, item, schema.item()));
        }
        (Type::Map, Value::Object(object)) => {
            write_members(out, object, |out, _, value| write_value(out, value, schema.value()));
        }
        (Type::Union(_), Value::Object(_)) => {
            let inner = schema.union().map_or(schema, |(_, inner, _)| inner);
            write_value(out, value, inner);
        }
        (Type::Union(_), Value::Array(_)) => {
            let other = schema.union().map_or(schema, |(_, _, other)| other);
            write_value(out, value, other);
        }
        // A custom resource has the text.
        (Type::Bytes, Value::String(text)) if !schema.is_structural() => match base64::decode(text) {
            Ok(bytes) => {
                // The content is to be shown as base64.
                write::head(out, 6, 22);
                write::bytes(out, &bytes);
            }
            Err(_) => write_any(out, value),
        },
        // The server has accepted the text: it is shown however large its tree is.
        (Type::FieldsV1, Value::String(text)) => match decode_raw(text.as_bytes()) {
            Ok(fields) => write_any(out, &fields),
            Err(_) => write_any(out, value),
        },
        // Doubles that are whole are floats, too.
        (Type::Float64, Value::Number(number)) if !schema.is_structural() => {
            write::float(out, number.as_f64().unwrap_or_default());
        }
        (_, value) => write_any(out, value),
    }
}

/// Appends a struct with the fields that its JSON has.
fn write_struct(out: &mut Vec<u8>, object: Option<&Map>, schema: SchemaRef<'_>) {
    let mut fields: Vec<(FieldRef<'_>, Option<&Value>)> = Vec::new();
    for (name, value) in object.into_iter().flatten() {
        let Some(field) = schema.field(name) else { continue };
        if !value.is_null() && !leaves_out(field, value) {
            fields.push((field, Some(value)));
        }
    }
    for index in schema.always_written() {
        if let Some(field) = schema.field_at(index)
            && !fields.iter().any(|(other, _)| other.name() == field.name())
        {
            fields.push((field, None));
        }
    }
    fields.sort_unstable_by_key(|(field, _)| order(field.name()));
    write::map(out, fields.len());
    for (field, value) in fields {
        write::bytes(out, field.name().as_bytes());
        match value {
            Some(value) => write_value(out, value, field.ty()),
            None if field.is_pointer() => write::null(out),
            None => write_zero(out, field.ty()),
        }
    }
}

fn write_zero(out: &mut Vec<u8>, schema: SchemaRef<'_>) {
    match schema.ty() {
        Type::Struct => write_struct(out, None, schema),
        Type::Bool | Type::Union(Union::SchemaOrBool) => write::bool(out, false),
        Type::Int32 | Type::Int64 | Type::IntOrString => write::integer(out, 0),
        Type::Float64 => write::float(out, 0.0),
        Type::String => write::bytes(out, b""),
        Type::Quantity => write::bytes(out, b"0"),
        Type::Duration => write::bytes(out, b"0s"),
        Type::Bytes
        | Type::Time
        | Type::MicroTime
        | Type::RawExtension
        | Type::FieldsV1
        | Type::Json
        | Type::Any
        | Type::List
        | Type::Map
        | Type::Union(_) => write::null(out),
    }
}

fn write_members(out: &mut Vec<u8>, object: &Map, mut write: impl FnMut(&mut Vec<u8>, &str, &Value)) {
    let mut members: Vec<(&Text, &Value)> = object.iter().collect();
    members.sort_unstable_by_key(|(key, _)| order(key));
    write::map(out, members.len());
    for (key, value) in members {
        write::bytes(out, key.as_bytes());
        write(out, key, value);
    }
}

/// The order of encoded keys: a head with the length comes before the text.
fn order(key: &str) -> (usize, &str) {
    (key.len(), key)
}
