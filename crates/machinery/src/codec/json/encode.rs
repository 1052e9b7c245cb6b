//! Encodes a tree as the JSON that Go's encoder writes.

use pintle_schema::{FieldRef, Omit, SchemaRef, Type};
use pintle_tree::{Map, Value};
use std::cell::Cell;

use super::decode::is_zero;
use super::fields::write_sorted_fields;
use super::write::{write_any, write_string};
use crate::managed_fields::write_fields_v1;

/// The size of the buffer that a thread keeps for the next object, in bytes.
const MAX_KEPT: usize = 64 << 10;

thread_local! {
    static BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Encodes an object, without the line feed that ends a response body, for which the result has room.
///
/// Growing a buffer for each object takes memory of several sizes, most of it new to the processor. A buffer is grown
/// once for each thread instead, and the result is a copy of the right size.
pub fn encode(value: &Value, schema: SchemaRef<'_>) -> Vec<u8> {
    let mut buffer = BUFFER.take();
    encode_to(&mut buffer, value, schema);
    if buffer.capacity() > MAX_KEPT {
        return buffer;
    }
    let mut out = Vec::with_capacity(buffer.len() + 1);
    out.extend_from_slice(&buffer);
    buffer.clear();
    BUFFER.set(buffer);
    out
}

/// Appends the JSON of an object.
pub fn encode_to(out: &mut Vec<u8>, value: &Value, schema: SchemaRef<'_>) {
    Writer { out, slots: Vec::with_capacity(64), sorted: !schema.is_declared() }.write(value, schema);
}

/// The JSON of the zero value of a type.
pub(super) fn zero_json(schema: SchemaRef<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    Writer { out: &mut out, slots: Vec::new(), sorted: false }.write_zero(schema);
    out
}

/// A field to write: its position, and its value in the tree or `None` for the zero value.
type Slot<'v> = (usize, Option<&'v Value>);

struct Writer<'o, 'v> {
    out: &'o mut Vec<u8>,
    /// The fields of the structs that are being written, innermost last. One shared vector saves allocations.
    slots: Vec<Slot<'v>>,
    /// Set inside a custom resource, which Go holds as maps and writes sorted by key.
    sorted: bool,
}

impl<'v> Writer<'_, 'v> {
    fn write(&mut self, value: &'v Value, schema: SchemaRef<'_>) {
        match (schema.ty(), value) {
            (Type::String, Value::String(text)) => write_string(self.out, text),
            (Type::Struct, Value::Object(object)) if schema.is_declared() => {
                self.write_struct(Some(object), schema);
            }
            (Type::Struct, Value::Object(object)) => {
                self.write_members(object, |writer, key, value| match schema.field(key) {
                    Some(field) => writer.write(value, field.ty()),
                    None => write_any(writer.out, value),
                });
            }
            (Type::List, Value::Array(items)) => {
                let item_schema = schema.item();
                self.out.push(b'[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        self.out.push(b',');
                    }
                    self.write(item, item_schema);
                }
                self.out.push(b']');
            }
            (Type::Map, Value::Object(object)) => {
                let value_schema = schema.value();
                self.write_members(object, |writer, _, value| writer.write(value, value_schema));
            }
            (Type::Union(_), Value::Object(_)) => {
                let inner = schema.union().map_or(schema, |(_, inner, _)| inner);
                self.write(value, inner);
            }
            (Type::Union(_), Value::Array(_)) => {
                let other = schema.union().map_or(schema, |(_, _, other)| other);
                self.write(value, other);
            }
            (Type::FieldsV1, Value::String(text)) if self.sorted => write_sorted_fields(self.out, text),
            (Type::FieldsV1, Value::String(text)) => self.out.extend_from_slice(text.as_bytes()),
            // A tree that was decoded without its schema.
            (Type::FieldsV1, Value::Object(_)) if !self.sorted => write_fields_v1(self.out, value),
            (_, value) => write_any(self.out, value),
        }
    }

    fn write_struct(&mut self, object: Option<&'v Map>, schema: SchemaRef<'_>) {
        let base = self.slots.len();
        // An object has far fewer members than its type has fields, so looking up the members is cheaper.
        for (name, value) in object.into_iter().flatten() {
            let Some(index) = schema.field_index(name) else { continue };
            let Some(field) = schema.field_at(index) else { continue };
            if !value.is_null() && !leaves_out(field, value) {
                self.slots.push((index, Some(value)));
            }
        }
        let given = self.slots.len();
        for index in schema.always_written() {
            let written = self.slots.get(base..given).unwrap_or_default();
            if !written.iter().any(|(other, _)| *other == index) {
                self.slots.push((index, None));
            }
        }
        let slots = self.slots.get_mut(base..).unwrap_or_default();
        if self.sorted {
            slots.sort_unstable_by_key(|(index, _)| schema.field_at(*index).map(FieldRef::name));
        } else {
            slots.sort_unstable_by_key(|(index, _)| *index);
        }

        self.out.push(b'{');
        for at in base..self.slots.len() {
            let Some(&(index, value)) = self.slots.get(at) else { continue };
            let Some(field) = schema.field_at(index) else { continue };
            if at > base {
                self.out.push(b',');
            }
            // Field names need no escapes.
            self.out.push(b'"');
            self.out.extend_from_slice(field.name().as_bytes());
            self.out.extend_from_slice(b"\":");
            match value {
                Some(value) => self.write(value, field.ty()),
                None if field.is_pointer() => self.out.extend_from_slice(b"null"),
                None => self.write_zero(field.ty()),
            }
        }
        self.out.push(b'}');
        self.slots.truncate(base);
    }

    fn write_zero(&mut self, schema: SchemaRef<'_>) {
        let zero: &[u8] = match schema.ty() {
            Type::Struct => return self.write_struct(None, schema),
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
        self.out.extend_from_slice(zero);
    }

    fn write_members(&mut self, object: &'v Map, write: impl Fn(&mut Self, &str, &'v Value)) {
        self.out.push(b'{');
        for (index, (key, value)) in object.iter().enumerate() {
            if index > 0 {
                self.out.push(b',');
            }
            write_string(self.out, key);
            self.out.push(b':');
            write(self, key, value);
        }
        self.out.push(b'}');
    }
}

/// Whether a field that is in the tree is not written.
pub(crate) fn leaves_out(field: FieldRef<'_>, value: &Value) -> bool {
    if field.is_pointer() {
        return false;
    }
    match field.omit() {
        Omit::Never => false,
        Omit::Empty => !field.ty().ty().is_go_struct() && is_zero(value, field.ty()),
        Omit::Zero => is_zero(value, field.ty()),
    }
}
