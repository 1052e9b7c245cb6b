//! Decodes CBOR into the canonical tree, by schema.
//!
//! Errors are those of the reference's library: decoding continues behind a value of a wrong type, the first error of a
//! map is that of the map, and a duplicate key takes precedence over the errors before it. A wrong type names the
//! outermost struct and its field, since every struct on the way out puts its own name there.

use std::collections::HashSet;
use std::fmt::{self, Write as _};

use pintle_go_forms::{base64, quote};
use pintle_schema::{FieldRef, SchemaRef, Type};
use pintle_tree::{Map, Number, Value};

use super::reader::{Head, Major, Reader};
use super::well_formed;
use crate::codec::error::{DecodeError, Decoded, EmptyField, Fallible, StrictProblem};
use crate::codec::findings::{Findings, Paths};
use crate::codec::json::{self, TypeMeta, is_zero, zero};
use crate::codec::weight::{ITEM, LIST, MEMBER, OBJECT, TEXT, Weight};
use crate::codec::{canonical_quantity, parse_micro_time, parse_time};

/// Reads only kind and apiVersion of a body, as the reference does before it decodes into a built-in type.
///
/// # Errors
/// When the body is not a map in CBOR, or one of the two fields is not a string.
pub fn type_meta(bytes: &[u8]) -> Result<TypeMeta, DecodeError> {
    let read = || -> Fallible<TypeMeta> {
        well_formed::check(bytes)?;
        let mut decoder = Decoder::new(bytes, Weight::of_body(bytes.len()));
        decoder.type_meta().map_err(Failure::into_error)
    };
    read().map_err(|error| *error)
}

/// Decodes a body as the type that the schema describes. An unknown field is reported by its index in its map, and only
/// the first one.
///
/// # Errors
/// When the body is not CBOR, too deep, has a value of the wrong type or a duplicate key.
pub fn decode(bytes: &[u8], schema: SchemaRef<'_>) -> Result<Decoded, DecodeError> {
    decode_within(bytes, schema, Weight::UNLIMITED).map_err(|error| *error)
}

/// As [`decode`], for a client's body: the memory of the tree is bounded in proportion to the body.
///
/// # Errors
/// As [`decode`], and when the tree would take too much memory.
pub fn decode_body(bytes: &[u8], schema: SchemaRef<'_>) -> Result<Decoded, DecodeError> {
    decode_within(bytes, schema, Weight::of_body(bytes.len())).map_err(|error| *error)
}

fn decode_within(bytes: &[u8], schema: SchemaRef<'_>, weight: Weight) -> Fallible<Decoded> {
    well_formed::check(bytes)?;
    let mut decoder = Decoder::new(bytes, weight);
    if schema.is_structural() {
        // A custom resource is a map in Go; its schema applies to the result.
        let value = decoder.root_map().map_err(Failure::into_error)?;
        let decoded = json::decode(&json::encode_exact(&value), schema).map_err(Box::new)?;
        // The reference reports the unknown fields of custom resources in JSON only.
        return Ok(Decoded { problems: Vec::new(), ..decoded });
    }
    let value = decoder.value(schema).map_err(Failure::into_error)?;
    Ok(Decoded {
        value: value.unwrap_or_else(|| zero(schema)),
        problems: decoder.unknown.map(StrictProblem::UnknownElement).into_iter().collect(),
        empty_fields: decoder.empty_fields.found,
    })
}

/// Why a value could not be decoded.
#[derive(Debug)]
pub(super) enum Failure {
    /// A value of a wrong type.
    Type {
        found: &'static str,
        ty: String,
        /// The outermost struct and its field so far.
        field: Option<String>,
        note: Option<String>,
    },
    /// Another error of the value.
    Value(Box<DecodeError>),
    /// An error that ends the decoding of the body.
    Fatal(Box<DecodeError>),
}

impl Failure {
    pub(super) fn mismatch(found: Major, ty: impl Into<String>) -> Failure {
        Failure::Type { found: found.name(), ty: ty.into(), field: None, note: None }
    }

    /// As [`Failure::mismatch`], for a value whose head was read: a negative integer that no integer of Go holds says so.
    pub(super) fn of_head(head: Head, ty: impl Into<String>) -> Failure {
        match head.major {
            Major::Negative if i64::try_from(head.value).is_err() => {
                let size = u128::from(head.value) + 1;
                Failure::noted(head.major, ty, format!("-{size} overflows Go's int64"))
            }
            major => Failure::mismatch(major, ty),
        }
    }

    pub(super) fn noted(found: Major, ty: impl Into<String>, note: String) -> Failure {
        Failure::Type { found: found.name(), ty: ty.into(), field: None, note: Some(note) }
    }

    fn duplicate(key: &str, index: usize) -> Failure {
        let key = quote(key);
        Failure::value(format!("cbor: found duplicate map key {key} at map element index {index}"))
    }

    pub(super) fn value(message: impl Into<String>) -> Failure {
        Failure::Value(DecodeError::cbor(message))
    }

    pub(super) fn into_error(self) -> Box<DecodeError> {
        match self {
            Failure::Value(error) | Failure::Fatal(error) => error,
            Failure::Type { found, ty, field, note } => {
                let place = field.map_or_else(|| "value".to_owned(), |field| format!("struct field {field}"));
                let note = note.map(|note| format!(" ({note})")).unwrap_or_default();
                DecodeError::cbor(format!(
                    "cbor: cannot unmarshal {found} into Go {place} of type {ty}{note}"
                ))
            }
        }
    }
}

/// Errors of the reader and of the memory bound end the decoding.
impl From<Box<DecodeError>> for Failure {
    fn from(error: Box<DecodeError>) -> Failure {
        Failure::Fatal(error)
    }
}

pub(super) type Step<T> = Result<T, Failure>;

/// The first failure of a map or list, whose rest is decoded all the same.
#[derive(Default)]
pub(super) struct First(Option<Failure>);

impl First {
    /// Takes the result of a part: its value, or `None` after a failure.
    pub(super) fn note<T>(&mut self, step: Step<T>) -> Step<Option<T>> {
        match step {
            Ok(value) => Ok(Some(value)),
            Err(failure @ Failure::Fatal(_)) => Err(failure),
            Err(failure) => {
                self.0.get_or_insert(failure);
                Ok(None)
            }
        }
    }

    pub(super) fn end<T>(self, value: T) -> Step<T> {
        self.0.map_or(Ok(value), Err)
    }
}

/// The length of a container while its items are read.
pub(super) struct Count {
    left: Option<u64>,
    read: usize,
}

impl Count {
    pub(super) fn of(head: Head) -> Count {
        Count { left: (!head.is_indefinite()).then_some(head.value), read: 0 }
    }

    /// The index of the next item, if there is one.
    pub(super) fn next(&mut self, reader: &mut Reader<'_>) -> Option<usize> {
        match &mut self.left {
            Some(0) => return None,
            Some(left) => *left -= 1,
            None if reader.take_break() => return None,
            None => {}
        }
        self.read += 1;
        Some(self.read - 1)
    }
}

pub(super) struct Decoder<'d> {
    pub(super) reader: Reader<'d>,
    /// The tags around the present value that tell the text encoding of bytes, innermost last.
    pub(super) later: Vec<u64>,
    weight: Weight,
    /// The index of an unknown field in its map.
    unknown: Option<usize>,
    /// The path of the present value, as messages write it.
    path: String,
    empty_fields: Findings<EmptyField>,
}

impl<'d> Decoder<'d> {
    /// A decoder of bytes that are well-formed.
    pub(super) fn new(bytes: &'d [u8], weight: Weight) -> Decoder<'d> {
        Decoder {
            reader: Reader::new(bytes),
            later: Vec::new(),
            weight,
            unknown: None,
            path: String::new(),
            empty_fields: Findings::with(Paths::Full),
        }
    }

    pub(super) fn next(&self) -> Option<Major> {
        self.reader.peek().map(Major::of)
    }

    pub(super) fn weigh(&mut self, bytes: usize) -> Step<()> {
        Ok(self.weight.add(bytes)?)
    }

    fn weigh_member(&mut self, members: usize) -> Step<()> {
        self.weigh(if members == 0 { OBJECT } else { MEMBER })
    }

    fn type_meta(&mut self) -> Step<TypeMeta> {
        self.enter()?;
        let head = self.untagged_head()?;
        let mut meta = TypeMeta::default();
        let mut first = First::default();
        match head.major {
            Major::Map => {}
            Major::Primitive if head.info == 22 => return Ok(meta),
            Major::Primitive if !matches!(head.info, 20 | 21 | 25..28) => return Err(unrecognized(head)),
            Major::Array => {
                let note = "cannot decode CBOR array to struct without toarray option".to_owned();
                return Err(Failure::noted(Major::Array, "v1.TypeMeta", note));
            }
            major => {
                if major == Major::Text {
                    self.text(head)?;
                }
                return Err(Failure::of_head(head, "v1.TypeMeta"));
            }
        }
        let mut count = Count::of(head);
        let mut seen = HashSet::new();
        while let Some(index) = count.next(&mut self.reader) {
            let Some(key) = first.note(self.field_name())? else {
                self.reader.skip()?;
                continue;
            };
            let slot = match key.as_str() {
                "kind" => &mut meta.kind,
                "apiVersion" => &mut meta.api_version,
                _ => {
                    self.reader.skip()?;
                    if !seen.insert(key.clone()) {
                        return Err(Failure::duplicate(&key, index));
                    }
                    continue;
                }
            };
            let step = self.optional_text("string");
            if !seen.insert(key.clone()) {
                return Err(Failure::duplicate(&key, index));
            }
            let step = step.map_err(|failure| in_field(failure, "v1.TypeMeta", &key));
            if let Some(Some(text)) = first.note(step)? {
                *slot = text;
            }
        }
        first.end(meta)
    }

    /// Decodes a value. `None` means absent: the value was `null`, or of a type that has a zero value.
    fn value(&mut self, schema: SchemaRef<'_>) -> Step<Option<Value>> {
        self.enter()?;
        match schema.ty() {
            Type::Any => return Ok(Some(self.any()?).filter(|value| !value.is_null())),
            Type::Time | Type::MicroTime => return self.time(schema.ty() == Type::MicroTime),
            Type::Quantity => {
                let Some(text) = self.alone(|decoder| decoder.optional_text("string"))? else {
                    return Ok(None);
                };
                let quantity = canonical_quantity(text.trim()).map_err(Failure::Value)?;
                return Ok(Some(Value::from(quantity)));
            }
            Type::IntOrString => return self.alone(Decoder::int_or_string),
            Type::FieldsV1 => {
                let value = self.alone(Decoder::any)?;
                return Ok(Some(value).filter(|value| !value.is_null()).map(|value| json::closed(&value)));
            }
            Type::RawExtension => {
                let value = self.alone(Decoder::any).map_err(|failure| match failure {
                    Failure::Fatal(error) => Failure::Fatal(error),
                    failure => Failure::value(format!(
                        "failed to transcode RawExtension to JSON: failed to parse RawExtension bytes as CBOR: {}",
                        failure.into_error()
                    )),
                })?;
                // The reference keeps these values as JSON, which has no whole floats.
                let value =
                    json::decode_any(&json::encode_any(&value)).map_err(|e| Failure::Fatal(Box::new(e)))?;
                return Ok(Some(value).filter(|value| !value.is_null()));
            }
            // These types have a decoder for JSON only.
            Type::Duration | Type::Json | Type::Union(_) => {
                let value = self.alone(Decoder::any).map_err(transcoding)?;
                let decoded = json::decode(&json::encode_any(&value), schema);
                let value = decoded.map_err(|error| Failure::Value(Box::new(error)))?.value;
                return Ok(Some(value).filter(|value| !value.is_null()));
            }
            Type::Bool
            | Type::Int32
            | Type::Int64
            | Type::Float64
            | Type::String
            | Type::Bytes
            | Type::Struct
            | Type::List
            | Type::Map => {}
        }
        if let Some(tag) = self.tag()? {
            let value = self.value(schema);
            self.leave(tag);
            return value;
        }
        let start = self.reader.clone();
        let head = self.reader.head()?;
        let mismatch = || Failure::of_head(head, schema.go_type());
        match head.major {
            Major::Positive | Major::Negative => self.integer(head, schema).map(Some),
            Major::Bytes if schema.ty() == Type::Bytes => self.bytes(head).map(Some),
            Major::Bytes | Major::Text => {
                let text = self.text(head)?;
                match schema.ty() {
                    Type::String => Ok(Some(Value::from(text))),
                    _ => Err(mismatch()),
                }
            }
            Major::Primitive => match (head.info, schema.ty()) {
                (20 | 21, Type::Bool) => Ok(Some(Value::Bool(head.info == 21))),
                (22, _) => Ok(None),
                (25..28, Type::Float64) => Ok(head.float().and_then(Number::from_f64).map(Value::Number)),
                (20 | 21 | 25..28, _) => Err(mismatch()),
                _ => Err(unrecognized(head)),
            },
            Major::Array => match schema.ty() {
                Type::List => self.list(head, schema).map(Some),
                Type::Bytes => self.byte_list(head).map(Some),
                ty => {
                    self.reader = start;
                    self.reader.skip()?;
                    if ty != Type::Struct {
                        return Err(mismatch());
                    }
                    let note = "cannot decode CBOR array to struct without toarray option".to_owned();
                    Err(Failure::noted(head.major, schema.go_type(), note))
                }
            },
            Major::Map => match schema.ty() {
                Type::Struct => self.structure(head, schema).map(Some),
                Type::Map => self.map(head, schema).map(Some),
                _ => {
                    self.reader = start;
                    self.reader.skip()?;
                    Err(mismatch())
                }
            },
            // Tags were read above.
            Major::Tag => Err(mismatch()),
        }
    }

    /// Skips the tags of self-described CBOR in front of a value, and checks the other tags.
    pub(super) fn enter(&mut self) -> Step<()> {
        self.reader.skip_self_described()?;
        let mut ahead = self.reader.clone();
        while ahead.peek().map(Major::of) == Some(Major::Tag) {
            let tag = ahead.head()?.value;
            let Some(content) = ahead.peek() else { continue };
            let major = Major::of(content);
            let expected = match tag {
                0 if major != Major::Text => "text string",
                1 if !matches!(major, Major::Positive | Major::Negative)
                    && !(0xf9..=0xfb).contains(&content) =>
                {
                    "integer or floating-point number"
                }
                _ => continue,
            };
            self.reader.skip()?;
            let found = major.name();
            return Err(Failure::value(format!(
                "cbor: tag number {tag} must be followed by {expected}, got {found}"
            )));
        }
        Ok(())
    }

    /// Reads a tag, if one is next. The result is for [`Decoder::leave`].
    pub(super) fn tag(&mut self) -> Step<Option<u64>> {
        if self.next() != Some(Major::Tag) {
            return Ok(None);
        }
        let tag = self.reader.head()?.value;
        if matches!(tag, 21..=23) {
            self.later.push(tag);
        }
        Ok(Some(tag))
    }

    /// Ends the effect of a tag.
    pub(super) fn leave(&mut self, tag: u64) {
        if matches!(tag, 21..=23) {
            self.later.pop();
        }
    }

    /// The head of the value behind any tags, whose effect is not needed.
    fn untagged_head(&mut self) -> Step<Head> {
        let mut head = self.reader.head()?;
        while head.major == Major::Tag {
            head = self.reader.head()?;
        }
        Ok(head)
    }

    /// Decodes a value of a type with a decoder of its own, which does not know the tags around it.
    fn alone<T>(&mut self, decode: impl FnOnce(&mut Self) -> Step<T>) -> Step<T> {
        let later = std::mem::take(&mut self.later);
        let value = decode(self);
        self.later = later;
        value
    }

    fn integer(&mut self, head: Head, schema: SchemaRef<'_>) -> Step<Value> {
        let ty = schema.go_type();
        let value = match (head.major, i64::try_from(head.value)) {
            (Major::Negative, Ok(value)) => -1 - value,
            (Major::Negative, Err(_)) => {
                let size = u128::from(head.value) + 1;
                return Err(Failure::noted(head.major, ty, format!("-{size} overflows Go's int64")));
            }
            (_, Ok(value)) => value,
            (_, Err(_)) => match schema.ty() {
                Type::Float64 => return Ok(float(head.value as f64)),
                Type::Int32 | Type::Int64 => {
                    let note = format!("{} overflows {ty}", head.value);
                    return Err(Failure::noted(head.major, ty, note));
                }
                _ => return Err(Failure::of_head(head, ty)),
            },
        };
        match schema.ty() {
            Type::Int32 if i32::try_from(value).is_err() => {
                let note = format!("{value} overflows {ty}");
                Err(Failure::noted(head.major, ty, note))
            }
            Type::Int32 | Type::Int64 => Ok(Value::Number(value.into())),
            Type::Float64 => Ok(float(value as f64)),
            _ => Err(Failure::of_head(head, ty)),
        }
    }

    /// The text of a string whose head was read. Bytes inside a tag for it are encoded as the tag says.
    pub(super) fn text(&mut self, head: Head) -> Step<String> {
        let mut joined = Vec::new();
        // Each chunk is a text of its own.
        let has_texts = !head.is_indefinite() || self.reader.chunks_are_texts();
        let bytes = self.reader.string(head, &mut joined)?.unwrap_or(&joined);
        self.weight.add(bytes.len() + TEXT)?;
        if head.major == Major::Text {
            let text = std::str::from_utf8(bytes).ok().filter(|_| has_texts);
            return text.map(str::to_owned).ok_or_else(|| Failure::value("cbor: invalid UTF-8 string"));
        }
        Ok(match self.later.last() {
            None => String::from_utf8_lossy(bytes).into_owned(),
            Some(21) => base64::encode(bytes).trim_end_matches('=').replace('+', "-").replace('/', "_"),
            Some(22) => base64::encode(bytes),
            Some(_) => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        })
    }

    /// The base64 of a byte string whose head was read. Without a tag that says otherwise, the string has base64 itself.
    fn bytes(&mut self, head: Head) -> Step<Value> {
        let mut joined = Vec::new();
        let bytes = self.reader.string(head, &mut joined)?.unwrap_or(&joined);
        self.weight.add(bytes.len() * 4 / 3 + TEXT)?;
        if !self.later.is_empty() {
            return Ok(Value::from(base64::encode(bytes)));
        }
        let text = String::from_utf8_lossy(bytes);
        let canonical = base64::canonical(&text).map_err(|error| {
            Failure::value(format!("cbor: failed to decode base64 from byte string: {error}"))
        })?;
        Ok(Value::from(canonical))
    }

    /// The base64 of bytes that are an array of numbers.
    fn byte_list(&mut self, head: Head) -> Step<Value> {
        let mut bytes = Vec::new();
        let mut first = First::default();
        let mut count = Count::of(head);
        while count.next(&mut self.reader).is_some() {
            let step = self.byte();
            bytes.push(first.note(step)?.unwrap_or_default());
        }
        self.weigh(bytes.len() * 4 / 3 + TEXT)?;
        first.end(Value::from(base64::encode(&bytes)))
    }

    fn byte(&mut self) -> Step<u8> {
        self.enter()?;
        let start = self.reader.clone();
        let head = self.untagged_head()?;
        match (head.major, u8::try_from(head.value)) {
            (Major::Positive, Ok(byte)) => Ok(byte),
            (Major::Positive, Err(_)) => {
                Err(Failure::noted(head.major, "uint8", format!("{} overflows uint8", head.value)))
            }
            _ if head.is_nil() => Ok(0),
            _ => {
                self.reader = start;
                self.reader.skip()?;
                Err(Failure::of_head(head, "uint8"))
            }
        }
    }

    /// A string or null, where only these are expected.
    fn optional_text(&mut self, ty: &str) -> Step<Option<String>> {
        self.enter()?;
        if let Some(tag) = self.tag()? {
            let text = self.optional_text(ty);
            self.leave(tag);
            return text;
        }
        match self.next() {
            Some(Major::Bytes | Major::Text) => {
                let head = self.reader.head()?;
                self.text(head).map(Some)
            }
            // Only a pointer may be undefined.
            _ if self.reader.peek() == Some(0xf6) => {
                self.reader.skip()?;
                Ok(None)
            }
            _ => {
                let start = self.reader.clone();
                let head = self.reader.head()?;
                self.reader = start;
                self.reader.skip()?;
                match head.major {
                    Major::Primitive if !matches!(head.info, 20 | 21 | 25..28) => Err(unrecognized(head)),
                    _ => Err(Failure::of_head(head, ty)),
                }
            }
        }
    }

    fn time(&mut self, micro: bool) -> Step<Option<Value>> {
        let Some(text) = self.alone(|decoder| decoder.optional_text("string"))? else { return Ok(None) };
        let parsed = if micro { parse_micro_time(&text) } else { parse_time(&text) };
        let time = parsed.map_err(|message| Failure::Value(DecodeError::value(message)))?;
        if time.is_zero() {
            return Ok(None);
        }
        Ok(Some(Value::from(if micro { time.to_micros() } else { time.to_seconds() })))
    }

    fn int_or_string(&mut self) -> Step<Option<Value>> {
        let start = self.reader.clone();
        // `null` is an empty string to the reference's decoder.
        match self.optional_text("string") {
            Ok(text) => return Ok(Some(Value::from(text.unwrap_or_default()))),
            Err(failure @ Failure::Fatal(_)) => return Err(failure),
            Err(_) => self.reader = start,
        }
        self.enter()?;
        let start = self.reader.clone();
        let head = self.untagged_head()?;
        let value = i32::try_from(head.value);
        match (head.major, value) {
            (Major::Positive, Ok(value)) => Ok(Some(Value::Number(value.into()))),
            (Major::Negative, Ok(value)) => Ok(Some(Value::Number((-1 - value).into()))),
            (Major::Positive, Err(_)) => {
                Err(Failure::noted(head.major, "int32", format!("{} overflows int32", head.value)))
            }
            (Major::Negative, Err(_)) => {
                let size = u128::from(head.value) + 1;
                let limit = if i64::try_from(head.value).is_ok() { "int32" } else { "Go's int64" };
                Err(Failure::noted(head.major, "int32", format!("-{size} overflows {limit}")))
            }
            _ => {
                self.reader = start;
                self.reader.skip()?;
                Err(Failure::of_head(head, "int32"))
            }
        }
    }

    fn list(&mut self, head: Head, schema: SchemaRef<'_>) -> Step<Value> {
        let ty = schema.item();
        self.weigh(LIST)?;
        let mut items = Vec::new();
        let mut first = First::default();
        let mut count = Count::of(head);
        while let Some(index) = count.next(&mut self.reader) {
            self.weigh(ITEM)?;
            let step = self.at(format_args!("[{index}]"), |decoder| decoder.value(ty));
            items.push(first.note(step)?.flatten().unwrap_or_else(|| zero(ty)));
        }
        first.end(Value::Array(items))
    }

    /// Decodes a map. A null leaves a scalar as the one before it, as [`Decoder::key`] leaves a key.
    fn map(&mut self, head: Head, schema: SchemaRef<'_>) -> Step<Value> {
        let ty = schema.value();
        let is_scalar =
            matches!(ty.ty(), Type::Bool | Type::Int32 | Type::Int64 | Type::Float64 | Type::String);
        let mut object = Map::new();
        let mut key = String::new();
        let mut key_before = String::new();
        let mut first = First::default();
        let mut count = Count::of(head);
        while let Some(index) = count.next(&mut self.reader) {
            let step = self.key(&mut key);
            if first.note(step)?.is_none() {
                self.reader.skip()?;
                continue;
            }
            let step = self.member(&key, |decoder| decoder.value(ty));
            let Some(value) = first.note(step)? else { continue };
            self.weigh_member(object.len())?;
            let before = object.get(key_before.as_str()).filter(|_| is_scalar && value.is_none());
            // A few bytes may repeat a long text.
            self.weigh(before.and_then(Value::as_str).map_or(0, |text| text.len() + TEXT))?;
            let value = value.or_else(|| before.cloned());
            if object.insert(key.as_str(), value.unwrap_or_else(|| zero(ty))).is_some() {
                self.skip_pairs(&mut count)?;
                return Err(Failure::duplicate(&key, index));
            }
            key_before.clone_from(&key);
        }
        first.end(Value::Object(object))
    }

    fn structure(&mut self, head: Head, schema: SchemaRef<'_>) -> Step<Value> {
        let before = self.unknown.take();
        let object = self.members(head, schema);
        self.unknown = before.or(self.unknown);
        object.map(Value::Object)
    }

    fn members(&mut self, head: Head, schema: SchemaRef<'_>) -> Step<Map> {
        let mut object = Map::new();
        let mut own_unknown = None;
        let mut seen = HashSet::new();
        let mut first = First::default();
        let mut count = Count::of(head);
        while let Some(index) = count.next(&mut self.reader) {
            let Some(key) = first.note(self.field_name())? else {
                self.reader.skip()?;
                continue;
            };
            let field = schema.field(&key);
            let unknown = self.unknown;
            let step = match field {
                Some(field) => self.member(field.name(), |decoder| decoder.field(field)),
                None => self.reader.skip().map(|()| None).map_err(Failure::from),
            };
            if !seen.insert(key.clone()) {
                self.skip_pairs(&mut count)?;
                return Err(Failure::duplicate(&key, index));
            }
            match field {
                None => own_unknown = own_unknown.or(Some(index)),
                Some(_) => {
                    // After an unknown field of this map no further ones are searched for.
                    if own_unknown.is_some() {
                        self.unknown = unknown;
                    }
                    let step = step.map_err(|failure| in_field(failure, &schema.go_type(), &key));
                    if let Some(Some(value)) = first.note(step)? {
                        self.weigh_member(object.len())?;
                        object.insert(key, value);
                    }
                }
            }
        }
        self.unknown = own_unknown.or(self.unknown);
        if object.is_empty() {
            self.weigh(OBJECT)?;
        }
        first.end(object)
    }

    /// Decodes the value of a field; `None` when the tree does not have it.
    fn field(&mut self, field: FieldRef<'_>) -> Step<Option<Value>> {
        const UNDEFINED: u8 = 0xf7;
        if field.is_pointer() && self.reader.peek() == Some(UNDEFINED) {
            self.reader.skip()?;
            return Ok(None);
        }
        let Some(value) = self.value(field.ty())? else { return Ok(None) };
        let is_zero = is_zero(&value, field.ty());
        if is_zero && !value.is_null() && matches!(field.ty().ty(), Type::List | Type::Map) {
            self.empty_fields.report(|_| self.path.clone(), |path| EmptyField { path, value: value.clone() });
        }
        let is_told = field.tells_empty_from_none() && !value.is_null();
        Ok(Some(value).filter(|_| field.is_pointer() || !is_zero || is_told))
    }

    /// Decodes the value of a field, or of a key of a map.
    fn member<T>(&mut self, name: &str, decode: impl FnOnce(&mut Self) -> Step<T>) -> Step<T> {
        let separator = if self.path.is_empty() { "" } else { "." };
        self.at(format_args!("{separator}{name}"), decode)
    }

    /// Decodes the value at a step from the present one.
    fn at<T>(&mut self, step: fmt::Arguments<'_>, decode: impl FnOnce(&mut Self) -> Step<T>) -> Step<T> {
        let length = self.path.len();
        // Writing to a string does not fail.
        let _ = self.path.write_fmt(step);
        let value = decode(self);
        self.path.truncate(length);
        value
    }

    /// The name of a struct's field, which may be a byte string.
    fn field_name(&mut self) -> Step<String> {
        match self.next() {
            Some(Major::Text | Major::Bytes) => {
                let head = self.reader.head()?;
                self.alone(|decoder| decoder.text(head))
            }
            major => {
                let major = major.unwrap_or(Major::Primitive);
                let start = self.reader.at();
                let head = self.reader.clone().head()?;
                self.reader.skip()?;
                if major == Major::Negative && i64::try_from(head.value).is_err() {
                    let note = format!("-1-{} overflows Go's int64", head.value);
                    return Err(Failure::noted(major, "int64", note));
                }
                if matches!(major, Major::Positive | Major::Negative) {
                    // Numbers are names, too, although no field has one.
                    let number = self.reader.since(start);
                    return Ok(format!(
                        "\0{}",
                        number.iter().map(|byte| format!("{byte:02x}")).collect::<String>()
                    ));
                }
                let name = major.name();
                let note = format!("map key is of type {name} and cannot be used to match struct field name");
                Err(Failure::noted(major, "string", note))
            }
        }
    }

    /// Decodes the key of a map's next pair. A null leaves the key before, as the library of the reference does: it decodes
    /// all keys into one variable.
    fn key(&mut self, key: &mut String) -> Step<()> {
        if let Some(text) = self.optional_text("string")? {
            *key = text;
        }
        Ok(())
    }

    /// Skips the rest of a map.
    fn skip_pairs(&mut self, count: &mut Count) -> Step<()> {
        while count.next(&mut self.reader).is_some() {
            self.reader.skip()?;
            self.reader.skip()?;
        }
        Ok(())
    }

    /// A map without a schema, with one failure for all of it.
    pub(super) fn object(&mut self, head: Head) -> Step<Map> {
        let mut object = Map::new();
        let mut key = String::new();
        let mut first = First::default();
        let mut count = Count::of(head);
        while let Some(index) = count.next(&mut self.reader) {
            let step = self.key(&mut key);
            if first.note(step)?.is_none() {
                self.reader.skip()?;
                continue;
            }
            let step = self.any();
            let Some(value) = first.note(step)? else { continue };
            self.weigh_member(object.len())?;
            if object.insert(key.as_str(), value).is_some() {
                self.skip_pairs(&mut count)?;
                return Err(Failure::duplicate(&key, index));
            }
        }
        if object.is_empty() {
            self.weigh(OBJECT)?;
        }
        first.end(object)
    }
}

/// Puts the name of a struct and its field into an error of the field's value.
fn in_field(failure: Failure, owner: &str, name: &str) -> Failure {
    match failure {
        Failure::Type { found, ty, note, .. } => {
            Failure::Type { found, ty, note, field: Some(format!("{owner}.{name}")) }
        }
        other => other,
    }
}

fn transcoding(failure: Failure) -> Failure {
    match failure {
        Failure::Fatal(error) => Failure::Fatal(error),
        failure => {
            let error = failure.into_error();
            Failure::value(format!("cbor: cannot transcode from cbor to json: {error}"))
        }
    }
}

/// The error for a simple value other than `true`, `false` and `null`.
pub(super) fn unrecognized(head: Head) -> Failure {
    let (name, value) = (head.major.name(), head.value);
    Failure::value(format!(
        "cbor: data item of cbor type {name} is not accepted by protocol: simple value {value} is not recognized"
    ))
}

/// A finite float, in the canonical tree an integer if JSON writes it so.
fn float(value: f64) -> Value {
    Number::from_f64(value).map_or(Value::Number(0.into()), Value::Number)
}
