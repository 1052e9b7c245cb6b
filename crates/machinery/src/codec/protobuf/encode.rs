//! Encodes a tree as the message that Go's generated code writes.

use pintle_schema::{FieldRef, Member, SchemaRef, Type, Union};
use pintle_tree::{Map, Value};

use super::envelope::seal;
use super::wire::{FIXED64, VARINT, write_bytes, write_nested, write_tag, write_varint};
use crate::codec::json::encode_any;
use crate::codec::{parse_micro_time, parse_time};
use crate::managed_fields::write_fields_v1;
use pintle_go_forms::{base64, parse_duration};

/// Encodes an object as a body. Kind and apiVersion are taken from the tree.
///
/// `None` for types without a protobuf form, such as tables and custom resources.
pub fn encode(value: &Value, schema: SchemaRef<'_>) -> Option<Vec<u8>> {
    let message = encode_message(value, schema)?;
    let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default();
    // Types that are not objects have fields of those names as part of the message.
    let (api_version, kind) = if schema.is_object() { (text("apiVersion"), text("kind")) } else { ("", "") };
    Some(seal(api_version, kind, &message))
}

/// Encodes an object's own message, without an envelope. `None` for types without a protobuf form.
pub fn encode_message(value: &Value, schema: SchemaRef<'_>) -> Option<Vec<u8>> {
    if !schema.is_declared() || (schema.members().next().is_none() && schema.fields().len() > 2) {
        return None;
    }
    let mut out = Vec::with_capacity(1024);
    write_struct(&mut out, value.as_object().unwrap_or(&Map::new()), schema);
    Some(out)
}

fn write_struct(out: &mut Vec<u8>, object: &Map, schema: SchemaRef<'_>) {
    for (number, member) in schema.members() {
        match member {
            Member::Embedded(inner) => write_nested(out, number, |out| write_struct(out, object, inner)),
            Member::Field(field) => match object.get(field.name()) {
                Some(value) if !value.is_null() => write_field(out, field, value),
                _ if !field.is_pointer() => write_zero(out, number, field.ty()),
                _ => {}
            },
        }
    }
}

fn write_field(out: &mut Vec<u8>, field: FieldRef<'_>, value: &Value) {
    let (number, schema) = (field.number(), field.ty());
    match (schema.ty(), value) {
        (Type::List, Value::Array(items)) if !schema.is_wrapped() => {
            for item in items {
                write_value(out, number, item, schema.item());
            }
        }
        (Type::Map, Value::Object(object)) => write_map(out, number, object, schema),
        _ => write_value(out, number, value, schema),
    }
}

/// Writes a map. The tree's maps are sorted, and Go writes them sorted too.
fn write_map(out: &mut Vec<u8>, number: u32, object: &Map, schema: SchemaRef<'_>) {
    for (key, value) in object {
        write_nested(out, number, |out| {
            write_bytes(out, 1, key.as_bytes());
            write_value(out, 2, value, schema.value());
        });
    }
}

/// Writes one value with its tag. A value of an unexpected type counts as zero.
fn write_value(out: &mut Vec<u8>, number: u32, value: &Value, schema: SchemaRef<'_>) {
    let text = value.as_str();
    match schema.ty() {
        Type::Bool => write_integer(out, number, i64::from(value.as_bool().unwrap_or_default())),
        Type::Int32 | Type::Int64 => write_integer(out, number, value.as_i64().unwrap_or_default()),
        Type::Float64 => {
            write_tag(out, number, FIXED64);
            out.extend_from_slice(&value.as_f64().unwrap_or_default().to_le_bytes());
        }
        Type::String => write_bytes(out, number, text.unwrap_or_default().as_bytes()),
        Type::Bytes => {
            let bytes = base64::decode(text.unwrap_or_default()).unwrap_or_default();
            write_bytes(out, number, &bytes);
        }
        Type::Time | Type::MicroTime => {
            let micro = schema.ty() == Type::MicroTime;
            let time =
                text.and_then(|text| if micro { parse_micro_time(text) } else { parse_time(text) }.ok());
            write_nested(out, number, |out| {
                if let Some(time) = time.filter(|time| !time.is_zero()) {
                    write_integer(out, 1, time.seconds);
                    write_integer(out, 2, if micro { i64::from(time.nanos / 1000 * 1000) } else { 0 });
                }
            });
        }
        Type::Duration => {
            let nanos = text.and_then(|text| parse_duration(text).ok()).unwrap_or_default();
            write_nested(out, number, |out| write_integer(out, 1, nanos));
        }
        Type::Quantity => {
            write_nested(out, number, |out| write_bytes(out, 1, text.unwrap_or("0").as_bytes()));
        }
        Type::IntOrString => write_nested(out, number, |out| {
            write_integer(out, 1, i64::from(text.is_some()));
            write_integer(out, 2, value.as_i64().unwrap_or_default());
            write_bytes(out, 3, text.unwrap_or_default().as_bytes());
        }),
        Type::FieldsV1 => write_nested(out, number, |out| match value {
            Value::Null => {}
            Value::String(text) => write_bytes(out, 1, text.as_bytes()),
            // A tree that was decoded without its schema.
            fields => {
                let mut text = Vec::with_capacity(256);
                write_fields_v1(&mut text, fields);
                write_bytes(out, 1, &text);
            }
        }),
        Type::RawExtension | Type::Json => write_nested(out, number, |out| {
            if !value.is_null() {
                write_bytes(out, 1, &encode_any(value));
            }
        }),
        Type::Struct => match value {
            Value::Object(object) => write_nested(out, number, |out| write_struct(out, object, schema)),
            _ => write_nested(out, number, |out| write_struct(out, &Map::new(), schema)),
        },
        Type::Union(union) => write_nested(out, number, |out| write_union(out, union, value, schema)),
        // A list with a message of its own, as the value of a map.
        Type::List => write_nested(out, number, |out| {
            for item in value.as_array().into_iter().flatten() {
                write_value(out, 1, item, schema.item());
            }
        }),
        // There are no maps of maps, and arbitrary values have no message.
        Type::Map | Type::Any => {}
    }
}

fn write_union(out: &mut Vec<u8>, union: Union, value: &Value, schema: SchemaRef<'_>) {
    let Some((_, inner, other)) = schema.union() else { return };
    match (union, value) {
        (Union::SchemaOrBool, Value::Object(_)) => {
            write_integer(out, 1, 1);
            write_value(out, 2, value, inner);
        }
        (Union::SchemaOrBool, _) => write_integer(out, 1, i64::from(*value == Value::Bool(true))),
        (_, Value::Object(_)) => write_value(out, 1, value, inner),
        (_, Value::Array(items)) => {
            for item in items {
                write_value(out, 2, item, other.item());
            }
        }
        _ => {}
    }
}

/// Writes the zero value of an absent field that is not a pointer.
fn write_zero(out: &mut Vec<u8>, number: u32, schema: SchemaRef<'_>) {
    match schema.ty() {
        Type::Bytes | Type::List | Type::Map | Type::Any => {}
        _ => write_value(out, number, &Value::Null, schema),
    }
}

fn write_integer(out: &mut Vec<u8>, number: u32, value: i64) {
    write_tag(out, number, VARINT);
    write_varint(out, value as u64);
}
