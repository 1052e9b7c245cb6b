//! Decodes a protobuf message into the canonical tree, by schema.

use std::cell::Cell;

use pintle_schema::{Member, Schema, SchemaRef, Type, Union};
use pintle_tree::{Map, Number, Value};

use super::envelope::{PREFIX, open};
use super::go_names::field_name;
use super::wire::{BYTES, FIXED64, Reader, VARINT, wrong_type};
use crate::codec::error::{DecodeError, Decoded, Fallible};
use crate::codec::json::{self, is_zero};
use crate::codec::weight::{ITEM, LIST, MEMBER, OBJECT, TEXT, Weight};
use crate::codec::{MAX_DEPTH, Timestamp, canonical_quantity};
use crate::scheme::unknown_kind;
use pintle_go_forms::{base64, format_duration};

/// Decodes a body as the type that the schema describes, whatever type the body declares. Its kind and apiVersion,
/// where given, are put into the tree. Unknown protobuf fields are skipped and not reported.
///
/// # Errors
/// When the body is not a message of that type.
pub fn decode(body: &[u8], schema: SchemaRef<'_>) -> Result<Decoded, DecodeError> {
    decode_within(body, schema, Weight::UNLIMITED)
}

/// As [`decode`], for a client's body: the memory of the tree is bounded in proportion to the body.
///
/// # Errors
/// As [`decode`], and when the tree would take too much memory.
pub fn decode_body(body: &[u8], schema: SchemaRef<'_>) -> Result<Decoded, DecodeError> {
    decode_within(body, schema, Weight::of_body(body.len()))
}

fn decode_within(body: &[u8], schema: SchemaRef<'_>, weight: Weight) -> Result<Decoded, DecodeError> {
    let unknown = open(body)?;
    let mut value = message_within(unknown.raw, schema, weight)?;
    if let (true, Value::Object(object)) = (schema.is_object(), &mut value) {
        for (name, text) in [("kind", unknown.kind), ("apiVersion", unknown.api_version)] {
            if !text.is_empty() {
                object.insert(name, Value::from(text));
            }
        }
    }
    Ok(Decoded { value, ..Decoded::default() })
}

/// Decodes an object's own message, without an envelope.
///
/// # Errors
/// When the bytes are not a message of that type.
pub fn decode_message(message: &[u8], schema: SchemaRef<'_>) -> Result<Value, DecodeError> {
    message_within(message, schema, Weight::UNLIMITED)
}

fn message_within(message: &[u8], schema: SchemaRef<'_>, weight: Weight) -> Result<Value, DecodeError> {
    let weight = Cell::new(weight);
    let mut object = Map::new();
    read_struct(message, schema, &mut object, Nest { depth: 0, weight: &weight }).map_err(|error| *error)?;
    Ok(Value::Object(object))
}

/// The depth of a message inside the body, and the memory that the body's tree may still take.
#[derive(Clone, Copy)]
struct Nest<'w> {
    depth: usize,
    weight: &'w Cell<Weight>,
}

impl Nest<'_> {
    fn deeper(self) -> Self {
        Nest { depth: self.depth + 1, ..self }
    }

    fn check_depth(self) -> Fallible<()> {
        match self.depth > MAX_DEPTH {
            true => Err(Box::new(DecodeError::Protobuf("proto: exceeded max depth".to_owned()))),
            false => Ok(()),
        }
    }

    /// Counts growth of the tree against the memory bound.
    fn weigh(self, bytes: usize) -> Fallible<()> {
        let mut weight = self.weight.get();
        weight.add(bytes)?;
        self.weight.set(weight);
        Ok(())
    }

    /// Counts another member of an object against the memory bound.
    fn weigh_member(self, object: &Map) -> Fallible<()> {
        self.weigh(if object.is_empty() { OBJECT } else { MEMBER })
    }
}

fn read_struct(message: &[u8], schema: SchemaRef<'_>, object: &mut Map, nest: Nest<'_>) -> Fallible<()> {
    nest.check_depth()?;
    if message.is_empty() {
        nest.weigh(OBJECT)?;
    }
    let mut reader = Reader::new(message);
    while let Some((number, wire_type)) = reader.tag(schema.name())? {
        let field = match schema.member_by_number(number) {
            None => {
                reader.skip(wire_type)?;
                continue;
            }
            Some(Member::Embedded(inner)) => {
                if wire_type != BYTES {
                    return Err(wrong_type(wire_type, inner.name()));
                }
                read_struct(reader.bytes()?, inner, object, nest.deeper())?;
                continue;
            }
            Some(Member::Field(field)) => field,
        };
        let ty = field.ty();
        let name = field.name();
        let go_name = || field_name(schema.name(), name);
        if object.is_empty() {
            nest.weigh(OBJECT)?;
        }
        match ty.ty() {
            Type::List if !ty.is_wrapped() => {
                let list = object.entry(name).or_insert_with(|| Value::Array(Vec::new()));
                let Value::Array(items) = list else { continue };
                read_items(&mut reader, wire_type, ty.item(), &go_name, items, nest)?;
            }
            Type::Map => {
                if wire_type != BYTES {
                    return Err(wrong_type(wire_type, &go_name()));
                }
                let (key, value) = read_entry(&mut reader, ty.value(), nest)?;
                let entries = object.entry(name).or_insert_with(|| Value::Object(Map::new()));
                if let Value::Object(entries) = entries {
                    nest.weigh_member(entries)?;
                    nest.weigh(key.len() + TEXT)?;
                    entries.insert(key, value);
                }
            }
            Type::Struct => {
                if wire_type != BYTES {
                    // Metadata is embedded in Go: the field has the name of its type.
                    return Err(match name {
                        "metadata" => wrong_type(wire_type, ty.name()),
                        _ => wrong_type(wire_type, &go_name()),
                    });
                }
                let mut inner = match object.remove(name) {
                    Some(Value::Object(inner)) => inner,
                    _ => Map::new(),
                };
                read_struct(reader.bytes()?, ty, &mut inner, nest.deeper())?;
                if field.is_pointer() || !inner.is_empty() {
                    object.insert(name, Value::Object(inner));
                }
            }
            _ => {
                if wire_type != wire_type_of(ty) {
                    return Err(wrong_type(wire_type, &go_name()));
                }
                let value = read_value(&mut reader, ty, nest)?;
                // Empty bytes are `""`, absent ones `null`.
                let tells_empty = ty.ty() == Type::Bytes && field.is_always_written();
                if value.is_null() || (!field.is_pointer() && !tells_empty && is_zero(&value, ty)) {
                    object.remove(name);
                } else {
                    object.insert(name, value);
                }
            }
        }
    }
    Ok(())
}

fn read_items(
    reader: &mut Reader<'_>,
    wire_type: u8,
    item: SchemaRef<'_>,
    go_name: &dyn Fn() -> String,
    items: &mut Vec<Value>,
    nest: Nest<'_>,
) -> Fallible<()> {
    let number = wire_type_of(item);
    // Numbers may be packed into one field, although Go's encoder does not pack them.
    if wire_type == BYTES && number != BYTES {
        let mut packed = Reader::new(reader.bytes()?);
        while !packed.at_end() {
            nest.weigh(ITEM)?;
            items.push(read_value(&mut packed, item, nest)?);
        }
        return Ok(());
    }
    if wire_type != number {
        return Err(wrong_type(wire_type, &go_name()));
    }
    nest.weigh(if items.is_empty() { LIST } else { ITEM })?;
    items.push(read_value(reader, item, nest)?);
    Ok(())
}

fn read_entry(reader: &mut Reader<'_>, schema: SchemaRef<'_>, nest: Nest<'_>) -> Fallible<(String, Value)> {
    let mut key = String::new();
    let mut value = None;
    reader.entry(|number, _, reader| {
        match number {
            1 => key = text(reader.bytes()?),
            2 => value = Some(read_value(reader, schema, nest)?),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    let value = match value {
        Some(value) => value,
        // A map entry without a value has the zero value; for messages, the empty message is decoded.
        None => match schema.ty() {
            Type::Bool => Value::Bool(false),
            Type::Int32 | Type::Int64 | Type::Float64 => Value::Number(0.into()),
            _ => read_value(&mut Reader::new(&[0]), schema, nest)?,
        },
    };
    Ok((key, value))
}

/// The wire type of values of a type.
fn wire_type_of(schema: SchemaRef<'_>) -> u8 {
    match schema.ty() {
        Type::Bool | Type::Int32 | Type::Int64 => VARINT,
        Type::Float64 => FIXED64,
        _ => BYTES,
    }
}

/// Reads one value of the wire type of its type. Returns null for the zero value of types whose zero JSON is `null`.
fn read_value(reader: &mut Reader<'_>, schema: SchemaRef<'_>, nest: Nest<'_>) -> Fallible<Value> {
    Ok(match schema.ty() {
        Type::Bool => Value::Bool(reader.varint()? != 0),
        Type::Int32 => Value::Number((reader.varint()? as i32).into()),
        Type::Int64 => Value::Number((reader.varint()? as i64).into()),
        Type::Float64 => {
            let float = f64::from_bits(reader.fixed64()?);
            // JSON has no infinities; Go's encoder fails on them.
            Number::from_f64(float).map_or(Value::Number(0.into()), Value::Number)
        }
        Type::String => {
            let bytes = reader.bytes()?;
            nest.weigh(bytes.len() + TEXT)?;
            Value::from(text(bytes))
        }
        Type::Bytes => {
            let bytes = reader.bytes()?;
            nest.weigh(bytes.len() * 4 / 3 + TEXT)?;
            Value::from(base64::encode(bytes))
        }
        Type::Time | Type::MicroTime => read_time(reader.bytes()?, schema.ty() == Type::MicroTime)?,
        Type::Duration => {
            let mut nanos = 0;
            fields(reader.bytes()?, "Duration", &[("Duration", VARINT)], |_, reader| {
                nanos = reader.varint()? as i64;
                Ok(())
            })?;
            Value::from(format_duration(nanos))
        }
        Type::Quantity => {
            let mut quantity = Value::from("0");
            fields(reader.bytes()?, "Quantity", &[("String_", BYTES)], |_, reader| {
                quantity = Value::from(canonical_quantity(&text(reader.bytes()?))?);
                Ok(())
            })?;
            quantity
        }
        Type::IntOrString => read_int_or_string(reader.bytes()?)?,
        Type::RawExtension | Type::FieldsV1 | Type::Json => {
            let mut raw = None;
            let name = match schema.ty() {
                Type::RawExtension => "RawExtension",
                Type::FieldsV1 => "FieldsV1",
                _ => "JSON",
            };
            fields(reader.bytes()?, name, &[("Raw", BYTES)], |_, reader| {
                raw = Some(reader.bytes()?);
                Ok(())
            })?;
            match raw {
                Some(raw) if !raw.is_empty() && schema.ty() == Type::FieldsV1 => read_fields(raw, nest)?,
                Some(raw) if !raw.is_empty() => read_raw(raw, nest)?,
                _ => Value::Null,
            }
        }
        Type::Struct => {
            let mut object = Map::new();
            read_struct(reader.bytes()?, schema, &mut object, nest.deeper())?;
            Value::Object(object)
        }
        Type::List => {
            let mut items = Vec::new();
            let mut list = Reader::new(reader.bytes()?);
            let go_name = || "Items".to_owned();
            while let Some((number, wire_type)) = list.tag(schema.name())? {
                match number {
                    1 => {
                        read_items(&mut list, wire_type, schema.item(), &go_name, &mut items, nest.deeper())?
                    }
                    _ => list.skip(wire_type)?,
                }
            }
            Value::Array(items)
        }
        Type::Union(union) => read_union(reader.bytes()?, union, schema, nest.deeper())?,
        Type::Map | Type::Any => {
            reader.bytes()?;
            Value::Null
        }
    })
}

/// Reads the fields of a small message: their names and wire types, from number 1 on. The function gets the number and reads
/// the value; unknown fields are skipped.
fn fields<'d>(
    message: &'d [u8],
    name: &str,
    known: &[(&str, u8)],
    mut take: impl FnMut(u32, &mut Reader<'d>) -> Fallible<()>,
) -> Fallible<()> {
    let mut reader = Reader::new(message);
    while let Some((number, wire_type)) = reader.tag(name)? {
        let index = usize::try_from(number).unwrap_or(usize::MAX).wrapping_sub(1);
        match known.get(index) {
            None => reader.skip(wire_type)?,
            Some((field, wanted)) if *wanted != wire_type => return Err(wrong_type(wire_type, field)),
            Some(_) => take(number, &mut reader)?,
        }
    }
    Ok(())
}

fn read_time(message: &[u8], micro: bool) -> Fallible<Value> {
    if message.is_empty() {
        return Ok(Value::Null);
    }
    let mut time = Timestamp { seconds: 0, nanos: 0 };
    fields(message, "Timestamp", &[("Seconds", VARINT), ("Nanos", VARINT)], |number, reader| {
        match number {
            1 => time.seconds = reader.varint()? as i64,
            _ => time.nanos = u32::try_from(reader.varint()?).unwrap_or(0),
        }
        Ok(())
    })?;
    if !micro {
        time.nanos = 0;
    }
    // Go fails to format times outside the years that JSON allows.
    if time.is_zero() || !(-62_167_219_200..253_402_300_800).contains(&time.seconds) {
        return Ok(Value::Null);
    }
    time.nanos %= 1_000_000_000;
    Ok(Value::from(if micro { time.to_micros() } else { time.to_seconds() }))
}

fn read_int_or_string(message: &[u8]) -> Fallible<Value> {
    let (mut is_text, mut integer, mut string) = (false, 0, String::new());
    let known = [("Type", VARINT), ("IntVal", VARINT), ("StrVal", BYTES)];
    fields(message, "IntOrString", &known, |number, reader| {
        match number {
            1 => is_text = reader.varint()? == 1,
            2 => integer = reader.varint()? as i32,
            _ => string = text(reader.bytes()?),
        }
        Ok(())
    })?;
    Ok(if is_text { Value::from(string) } else { Value::Number(integer.into()) })
}

/// Reads the JSON of a set of fields.
fn read_fields(raw: &[u8], nest: Nest<'_>) -> Fallible<Value> {
    let mut weight = nest.weight.get();
    weight.add(raw.len() + TEXT)?;
    nest.weight.set(weight);
    Ok(json::fields_of_bytes(raw, MAX_DEPTH.saturating_sub(nest.depth)))
}

/// Reads raw JSON, or an object in an envelope of its own.
fn read_raw(raw: &[u8], nest: Nest<'_>) -> Fallible<Value> {
    if !raw.starts_with(PREFIX) {
        let mut weight = nest.weight.get();
        let value = json::decode_within(raw, nest.depth, &mut weight)?;
        nest.weight.set(weight);
        return Ok(value);
    }
    nest.check_depth()?;
    let unknown = open(raw)?;
    let (group, version) = unknown.api_version.split_once('/').unwrap_or(("", &unknown.api_version));
    let Some(schema) = Schema::builtin().by_kind(group, version, &unknown.kind) else {
        let message = unknown_kind(&unknown.kind, &unknown.api_version);
        return Err(Box::new(DecodeError::Protobuf(message)));
    };
    let mut object = Map::new();
    read_struct(unknown.raw, schema, &mut object, nest.deeper())?;
    object.insert("kind", Value::from(unknown.kind));
    object.insert("apiVersion", Value::from(unknown.api_version));
    Ok(Value::Object(object))
}

fn read_union(message: &[u8], union: Union, schema: SchemaRef<'_>, nest: Nest<'_>) -> Fallible<Value> {
    let Some((_, inner, other)) = schema.union() else { return Ok(Value::Null) };
    nest.check_depth()?;
    let mut value = match union {
        Union::SchemaOrBool => Value::Bool(false),
        Union::SchemaOrArray | Union::SchemaOrStringArray => Value::Null,
    };
    let mut items = Vec::new();
    let known = match union {
        Union::SchemaOrBool => [("Allows", VARINT), ("Schema", BYTES)],
        Union::SchemaOrArray => [("Schema", BYTES), ("JSONSchemas", BYTES)],
        Union::SchemaOrStringArray => [("Schema", BYTES), ("Property", BYTES)],
    };
    fields(message, schema.name(), &known, |number, reader| {
        match (union, number) {
            (Union::SchemaOrBool, 1) => {
                let allows = reader.varint()? != 0;
                if !value.is_object() {
                    value = Value::Bool(allows);
                }
            }
            (Union::SchemaOrBool, _) | (_, 1) => {
                value = read_value(reader, inner, nest)?;
            }
            _ => items.push(read_value(reader, other.item(), nest)?),
        }
        Ok(())
    })?;
    Ok(if items.is_empty() { value } else { Value::Array(items) })
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
