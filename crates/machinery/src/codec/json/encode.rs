//! From a tree to the JSON that Go's encoder would write.

use pintle_schema::{FieldRef, Omit, SchemaRef, Type};
use serde_json::{Map, Value};

use super::decode::is_zero;
use crate::codec::number::write_number;

/// The JSON of an object, without the line feed that a response body ends with.
pub fn encode(value: &Value, schema: SchemaRef<'_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(1024);
    encode_to(&mut out, value, schema);
    out
}

/// Appends the JSON of an object.
pub fn encode_to(out: &mut Vec<u8>, value: &Value, schema: SchemaRef<'_>) {
    write(out, value, schema, !schema.is_declared());
}

/// The JSON of a value without schema, keys sorted.
pub fn encode_any(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    write_any(&mut out, value);
    out
}

/// `sorted`: inside a custom resource, which Go has as maps and writes sorted by key.
fn write(out: &mut Vec<u8>, value: &Value, schema: SchemaRef<'_>, sorted: bool) {
    match (schema.ty(), value) {
        (Type::Struct, Value::Object(object)) if !schema.is_declared() => {
            write_members(out, object, |out, key, value| match schema.field(key) {
                Some(field) => write(out, value, field.ty(), sorted),
                None => write_any(out, value),
            });
        }
        (Type::Struct, Value::Object(object)) => write_struct(out, object, schema, sorted),
        (Type::List, Value::Array(items)) => {
            out.push(b'[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write(out, item, schema.item(), sorted);
            }
            out.push(b']');
        }
        (Type::Map, Value::Object(object)) => {
            write_members(out, object, |out, _, value| write(out, value, schema.value(), sorted));
        }
        (Type::Union(_), Value::Object(_)) => {
            let inner = schema.union().map_or(schema, |(_, inner, _)| inner);
            write(out, value, inner, sorted);
        }
        (Type::Union(_), Value::Array(_)) => {
            let other = schema.union().map_or(schema, |(_, _, other)| other);
            write(out, value, other, sorted);
        }
        (_, value) => write_any(out, value),
    }
}

/// What a field is written as: what the tree has, or its zero value.
enum Slot<'v> {
    Value(&'v Value),
    Zero,
}

fn write_struct(out: &mut Vec<u8>, object: &Map<String, Value>, schema: SchemaRef<'_>, sorted: bool) {
    // There are far fewer members than fields, so looking up the fields of the members is the cheap way.
    let mut slots: Vec<(usize, Slot<'_>)> = Vec::with_capacity(object.len() + 4);
    for (name, value) in object {
        let Some(index) = schema.field_index(name) else { continue };
        let Some(field) = schema.field_at(index) else { continue };
        if value.is_null() || leaves_out(field, value) {
            continue;
        }
        slots.push((index, Slot::Value(value)));
    }
    let given = slots.len();
    for index in schema.always_written() {
        if !slots.iter().take(given).any(|(other, _)| *other == index) {
            slots.push((index, Slot::Zero));
        }
    }
    if sorted {
        slots.sort_by_key(|(index, _)| schema.field_at(*index).map(FieldRef::name));
    } else {
        slots.sort_unstable_by_key(|(index, _)| *index);
    }

    out.push(b'{');
    let mut first = true;
    for (index, slot) in slots {
        let Some(field) = schema.field_at(index) else { continue };
        if !std::mem::take(&mut first) {
            out.push(b',');
        }
        // Field names need no escapes.
        out.push(b'"');
        out.extend_from_slice(field.name().as_bytes());
        out.extend_from_slice(b"\":");
        match slot {
            Slot::Value(value) => write(out, value, field.ty(), sorted),
            Slot::Zero if field.is_pointer() => out.extend_from_slice(b"null"),
            Slot::Zero => write_zero(out, field.ty(), sorted),
        }
    }
    out.push(b'}');
}

/// Whether a field that the tree has is not written.
fn leaves_out(field: FieldRef<'_>, value: &Value) -> bool {
    if field.is_pointer() {
        return false;
    }
    match field.omit() {
        Omit::Never => false,
        Omit::Empty => !field.ty().ty().is_go_struct() && is_zero(value, field.ty()),
        Omit::Zero => is_zero(value, field.ty()),
    }
}

fn write_zero(out: &mut Vec<u8>, schema: SchemaRef<'_>, sorted: bool) {
    let zero: &[u8] = match schema.ty() {
        Type::Struct => return write_struct(out, &Map::new(), schema, sorted),
        Type::Bool => b"false",
        Type::Int32 | Type::Int64 | Type::Float64 | Type::IntOrString => b"0",
        Type::String => b"\"\"",
        Type::Quantity => b"\"0\"",
        Type::Duration => b"\"0s\"",
        Type::Union(pintle_schema::Union::SchemaOrBool) => b"false",
        Type::Bytes
        | Type::Time
        | Type::MicroTime
        | Type::RawExtension
        | Type::FieldsV1
        | Type::Json
        | Type::Any
        | Type::List
        | Type::Map
        | Type::Union(_) => b"null",
    };
    out.extend_from_slice(zero);
}

fn write_members(
    out: &mut Vec<u8>,
    object: &Map<String, Value>,
    mut write: impl FnMut(&mut Vec<u8>, &str, &Value),
) {
    out.push(b'{');
    for (index, (key, value)) in object.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_string(out, key);
        out.push(b':');
        write(out, key, value);
    }
    out.push(b'}');
}

fn write_any(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Number(number) => write_number(out, number),
        Value::String(text) => write_string(out, text),
        Value::Array(items) => {
            out.push(b'[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write_any(out, item);
            }
            out.push(b']');
        }
        Value::Object(object) => write_members(out, object, |out, _, value| write_any(out, value)),
    }
}

/// Appends a string in quotes, with Go's escapes: `<`, `>`, `&` and two line separators are escaped too,
/// so that the text may stand in HTML.
pub fn write_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let bytes = text.as_bytes();
    let mut start = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        let escape: &[u8] = match byte {
            b'"' => b"\\\"",
            b'\\' => b"\\\\",
            b'\n' => b"\\n",
            b'\r' => b"\\r",
            b'\t' => b"\\t",
            0x08 => b"\\b",
            0x0c => b"\\f",
            b'<' => b"\\u003c",
            b'>' => b"\\u003e",
            b'&' => b"\\u0026",
            ..b' ' => {
                out.extend_from_slice(bytes.get(start..at).unwrap_or_default());
                out.extend_from_slice(b"\\u00");
                out.extend_from_slice(format!("{byte:02x}").as_bytes());
                start = at + 1;
                continue;
            }
            // The line and the paragraph separator, U+2028 and U+2029.
            0xe2 => match bytes.get(at..at + 3) {
                Some([_, 0x80, 0xa8]) => b"\\u2028",
                Some([_, 0x80, 0xa9]) => b"\\u2029",
                _ => continue,
            },
            _ => continue,
        };
        out.extend_from_slice(bytes.get(start..at).unwrap_or_default());
        out.extend_from_slice(escape);
        start = at + if byte == 0xe2 { 3 } else { 1 };
    }
    out.extend_from_slice(bytes.get(start..).unwrap_or_default());
    out.push(b'"');
}
