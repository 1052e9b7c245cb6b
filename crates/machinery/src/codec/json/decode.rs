//! Decodes JSON into the canonical tree, by schema.

use std::borrow::Cow;
use std::collections::HashSet;

use pintle_schema::{FieldRef, SchemaRef, Type, Union};
use pintle_tree::{Map, Number, Value};

use super::any::{self, Unwatched, Watcher};
use super::fields::{fields_of_tree, fields_text};
use super::parser::{MAX_SKIPPED_DEPTH, Parser};
use crate::codec::error::{DecodeError, Decoded, EmptyField, Fallible, StrictProblem};
use crate::codec::findings::{Findings, Paths};
use crate::codec::weight::Weight;
use crate::codec::{MAX_DEPTH, canonical_quantity, parse_micro_time, parse_time, time};
use pintle_go_forms::{base64, format_duration, parse_duration};

/// The `kind` and `apiVersion` of a body; empty where absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypeMeta {
    /// `apiVersion`, not split into group and version.
    pub api_version: String,
    /// `kind`.
    pub kind: String,
}

/// The `kind` and `apiVersion` of a body that becomes a map: their names match exactly, and the last value counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapTypeMeta {
    /// `apiVersion`, not split into group and version; `None` if it is `null`.
    pub api_version: Option<String>,
    /// `kind`; empty where absent or `null`.
    pub kind: String,
}

/// Reads only kind and apiVersion of a body. The error is Go's, without a prefix; the reference puts `couldn't get
/// version/kind; json parse error: ` before it.
///
/// The whole body is checked to be JSON, so that [`decode`] meets no syntax error afterwards. The two names match
/// case-insensitively, as in the first pass of Go's own decoder.
///
/// # Errors
/// When the body is not JSON, or one of the two fields is not a string.
pub fn type_meta(bytes: &[u8]) -> Result<TypeMeta, DecodeError> {
    type_metas(bytes).map(|(meta, _)| meta)
}

/// As [`type_meta`], with the type metadata of the map that the body becomes.
///
/// # Errors
/// As [`type_meta`].
pub fn type_metas(bytes: &[u8]) -> Result<(TypeMeta, MapTypeMeta), DecodeError> {
    read_type_metas(bytes).map_err(|error| *error)
}

fn read_type_metas(bytes: &[u8]) -> Fallible<(TypeMeta, MapTypeMeta)> {
    const ANONYMOUS: &str = "struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; \
                             Kind string \"json:\\\"kind,omitempty\\\"\" }";
    let mut parser = Parser::new(bytes, Weight::UNLIMITED);
    let mut meta = TypeMeta::default();
    let mut of_map = MapTypeMeta { api_version: Some(String::new()), kind: String::new() };
    let mut failure: Option<DecodeError> = None;
    match parser.peek_value()? {
        b'{' => {
            let mut more = parser.open(b'}');
            while more {
                let key = parser.key()?;
                let (slot, name) = if key.eq_ignore_ascii_case("kind") {
                    (&mut meta.kind, "kind")
                } else if key.eq_ignore_ascii_case("apiVersion") {
                    (&mut meta.api_version, "apiVersion")
                } else {
                    // The object that holds the member counts.
                    parser.skip_within(MAX_SKIPPED_DEPTH - 1)?;
                    more = parser.next_member()?;
                    continue;
                };
                let exact = key.as_ref() == name;
                let mut value = None;
                match parser.peek_value()? {
                    b'"' => value = Some(parser.string()?.into_owned()),
                    b'n' => parser.literal()?,
                    first => {
                        parser.skip()?;
                        failure.get_or_insert_with(|| DecodeError::Type {
                            value: describe(first).to_owned(),
                            place: format!("struct field .{name}"),
                            ty: "string".to_owned(),
                        });
                    }
                }
                match name {
                    _ if !exact => {}
                    "kind" => of_map.kind = value.clone().unwrap_or_default(),
                    _ => of_map.api_version = value.clone(),
                }
                if let Some(value) = value {
                    *slot = value;
                }
                more = parser.next_member()?;
            }
        }
        b'n' => parser.literal()?,
        first => {
            parser.skip()?;
            failure = Some(DecodeError::Type {
                value: describe(first).to_owned(),
                place: "value".to_owned(),
                ty: ANONYMOUS.to_owned(),
            });
        }
    }
    parser.end()?;
    match failure {
        Some(failure) => Err(Box::new(failure)),
        None => Ok((meta, of_map)),
    }
}

/// Decodes a body as the type that the schema describes.
///
/// Unknown and duplicate fields are reported in the order of the text. For custom resources the order is the
/// reference's: duplicates first, then unknown fields sorted by path, with those of the metadata before others.
///
/// # Errors
/// When the body is not JSON, too deep, or has a value of the wrong type.
pub fn decode(bytes: &[u8], schema: SchemaRef<'_>) -> Result<Decoded, DecodeError> {
    decode_within(bytes, schema, Weight::UNLIMITED, Paths::Full)
}

/// As [`decode`], for the text of a tree that a patch has merged. The reference restores an object from the tree: it
/// leaves keys of maps out of the paths of unknown fields, sorts the fields, and counts equal paths separately.
///
/// # Errors
/// As [`decode`].
pub fn decode_merged(bytes: &[u8], schema: SchemaRef<'_>) -> Result<Decoded, DecodeError> {
    let mut decoded = decode_within(bytes, schema, Weight::UNLIMITED, Paths::WithoutKeys)?;
    decoded.problems.sort();
    Ok(decoded)
}

/// As [`decode`], for a client's body: the memory of the tree is bounded in proportion to the body.
///
/// # Errors
/// As [`decode`], and when the tree would take too much memory.
pub fn decode_body(bytes: &[u8], schema: SchemaRef<'_>) -> Result<Decoded, DecodeError> {
    decode_within(bytes, schema, Weight::of_body(bytes.len()), Paths::Full)
}

/// As [`decode`], for the response to a request of `question` bytes: the memory of the tree is bounded like that of a
/// body of twice that size.
///
/// # Errors
/// As [`decode`], and when the tree would take too much memory.
pub fn decode_answer(bytes: &[u8], schema: SchemaRef<'_>, question: usize) -> Result<Decoded, DecodeError> {
    decode_within(bytes, schema, Weight::of_answer(question), Paths::Full)
}

fn decode_within(
    bytes: &[u8],
    schema: SchemaRef<'_>,
    weight: Weight,
    problem_paths: Paths,
) -> Result<Decoded, DecodeError> {
    let mut decoder = Decoder {
        parser: Parser::new(bytes, weight),
        path: Vec::new(),
        own_decoder_at: None,
        problems: Findings::with(problem_paths),
        empty_fields: Findings::with(Paths::Full),
        muted: false,
        replaces_duplicates: !schema.is_declared(),
        failure: None,
    };
    match decoder.document(schema) {
        Ok(value) => {
            let mut problems = decoder.problems.found;
            if !schema.is_declared() {
                let (mut unknown, mut rest): (Vec<_>, Vec<_>) = problems
                    .into_iter()
                    .partition(|problem| matches!(problem, StrictProblem::UnknownField(_)));
                // The reference decodes the metadata separately, and first.
                unknown.sort_by_cached_key(|problem| match problem {
                    StrictProblem::UnknownField(path) => (!path.starts_with("metadata."), path.clone()),
                    StrictProblem::DuplicateField(_)
                    | StrictProblem::Yaml(_)
                    | StrictProblem::UnknownElement(_) => (true, String::new()),
                });
                rest.append(&mut unknown);
                problems = rest;
            }
            Ok(Decoded { value, problems, empty_fields: decoder.empty_fields.found })
        }
        Err(error) => Err(first_syntax_error(bytes).unwrap_or(*error)),
    }
}

/// Go checks the syntax of the whole text before it decodes anything.
fn first_syntax_error(bytes: &[u8]) -> Option<DecodeError> {
    let mut parser = Parser::new(bytes, Weight::UNLIMITED);
    parser.skip().and_then(|_| parser.end()).err().map(|error| *error)
}

fn describe(first: u8) -> &'static str {
    match first {
        b'{' => "object",
        b'[' => "array",
        b'"' => "string",
        b't' | b'f' => "bool",
        b'n' => "null",
        _ => "number",
    }
}

/// A step from a value to one of its parts.
enum Step<'d, 's> {
    Field(SchemaRef<'s>, FieldRef<'s>),
    Key(Cow<'d, str>),
    Item(usize),
}

struct Decoder<'d, 's> {
    parser: Parser<'d>,
    path: Vec<Step<'d, 's>>,
    /// The length of the path to the outermost type with a decoder of its own that a struct holds, inside such a type:
    /// messages name that struct, with the full path.
    own_decoder_at: Option<usize>,
    problems: Findings<StrictProblem>,
    empty_fields: Findings<EmptyField>,
    /// Set inside a type with a decoder of its own, which is not strict.
    muted: bool,
    /// Set for custom resources: the reference decodes them into a map, where only the last value of a duplicate field
    /// is left, and reads their metadata from it.
    replaces_duplicates: bool,
    /// The first value of a wrong type. Decoding continues, because a later syntax error takes precedence.
    failure: Option<Box<DecodeError>>,
}

impl<'d, 's> Decoder<'d, 's> {
    fn document(&mut self, schema: SchemaRef<'s>) -> Fallible<Value> {
        let value = self.value(schema, None)?;
        self.parser.end()?;
        match self.failure.take() {
            Some(failure) => Err(failure),
            None => Ok(value.unwrap_or_else(|| zero(schema))),
        }
    }

    /// Reads a value. `None` means absent: the value was `null` or of a wrong type. `old` is the earlier value of a
    /// duplicate field.
    fn value(&mut self, schema: SchemaRef<'s>, old: Option<Value>) -> Fallible<Option<Value>> {
        let first = self.parser.peek_value()?;
        if schema.is_structural() {
            return self.structural(schema, first, old).map(Some);
        }
        match schema.ty() {
            Type::Struct if first == b'{' => self.structure(schema, old).map(Some),
            Type::Struct => self.other_or_null(schema, first, old),
            Type::String => match first {
                b'"' => Ok(Some(Value::from(self.parser.string()?))),
                _ => self.other_or_null(schema, first, old),
            },
            Type::List if first == b'[' => self.list(schema, old).map(Some),
            Type::Map if first == b'{' => self.map(schema, old).map(Some),
            Type::List | Type::Map => self.other_or_null(schema, first, None),
            Type::Bool => match first {
                b't' | b'f' => {
                    self.parser.literal()?;
                    Ok(Some(Value::Bool(first == b't')))
                }
                _ => self.other_or_null(schema, first, old),
            },
            Type::Int32 | Type::Int64 | Type::Float64 => match first {
                b'-' | b'0'..=b'9' => self.number(schema),
                _ => self.other_or_null(schema, first, old),
            },
            Type::Bytes => self.bytes(schema, first),
            Type::Any => self.any().map(|value| Some(value).filter(|value| !value.is_null())),
            Type::RawExtension | Type::Json => {
                let value = any::value(&mut self.parser, self.path.len(), &mut Unwatched)?;
                Ok(if value.is_null() { old } else { Some(value) })
            }
            Type::FieldsV1 => {
                let text = self.parser.skip_within(MAX_DEPTH.saturating_sub(self.path.len()))?;
                self.parser.add_text(text.len())?;
                match text {
                    b"null" => Ok(old),
                    [b'"', ..] => any::decode_raw(text).map(|text| Some(fields_of_tree(text))),
                    _ => Ok(Some(fields_text(text))),
                }
            }
            Type::Time | Type::MicroTime => {
                let Some(text) = self.text(first)? else { return Ok(None) };
                self.time(schema, text)
            }
            Type::Duration => {
                let text = self.text(first)?.unwrap_or_default();
                let nanos = parse_duration(&text).map_err(DecodeError::value)?;
                Ok(Some(Value::from(format_duration(nanos))))
            }
            Type::Quantity => self.quantity(first),
            Type::IntOrString => match first {
                b'"' => Ok(Some(Value::from(self.parser.string()?))),
                b'n' => self.parser.literal().map(|()| None),
                _ => self.embedded_int(first).map(Some),
            },
            Type::Union(union) => self.union(schema, union, first),
        }
    }

    /// Reads a value of a custom resource. Wrong types are not decoding errors there: validation rejects them.
    fn structural(&mut self, schema: SchemaRef<'s>, first: u8, old: Option<Value>) -> Fallible<Value> {
        match (schema.ty(), first) {
            (Type::Struct, b'{') => self.structure(schema, old),
            (Type::List, b'[') => self.list(schema, None),
            (Type::Map, b'{') => self.map(schema, None),
            (_, b'{' | b'[') if !keeps_unknown(schema) => self.unstructured(schema, first),
            _ => self.any(),
        }
    }

    /// Reads a value for which the schema has no structure: validation will reject it, or its type never has a schema.
    /// Lists are kept; all members of objects are unknown.
    fn unstructured(&mut self, schema: SchemaRef<'s>, first: u8) -> Fallible<Value> {
        self.check_depth()?;
        match first {
            b'{' => {
                let mut more = self.parser.open(b'}');
                let mut unknown = HashSet::new();
                while more {
                    let key = self.parser.key()?;
                    self.unknown_member(schema, key, &mut unknown)?;
                    more = self.parser.next_member()?;
                }
                Ok(Value::Object(Map::new()))
            }
            b'[' => {
                let mut items = Vec::new();
                let mut more = self.parser.open_list()?;
                while more {
                    self.path.push(Step::Item(items.len()));
                    let first = self.parser.peek_value()?;
                    items.push(self.unstructured(schema, first)?);
                    self.path.pop();
                    more = self.parser.next_item()?;
                }
                Ok(Value::Array(items))
            }
            _ => self.any(),
        }
    }

    /// `null` keeps the old value; any other value is of the wrong type.
    fn other_or_null(
        &mut self,
        schema: SchemaRef<'s>,
        first: u8,
        old: Option<Value>,
    ) -> Fallible<Option<Value>> {
        if first == b'n' {
            self.parser.literal()?;
            return Ok(old);
        }
        self.parser.skip()?;
        self.mismatch(describe(first).to_owned(), schema.go_type());
        Ok(None)
    }

    fn mismatch(&mut self, value: String, ty: String) {
        if self.failure.is_none() {
            self.failure = Some(self.type_error(value, ty));
        }
    }

    /// The error for a value of the wrong type, with the position in the object.
    fn type_error(&self, value: String, ty: String) -> Box<DecodeError> {
        let mut fields = Vec::new();
        let mut owner = None;
        for (index, step) in self.path.iter().enumerate() {
            // The metadata of a custom resource is decoded separately.
            if let Step::Field(schema, field) = step
                && !schema.is_structural()
            {
                if self.own_decoder_at.is_none_or(|length| index < length) {
                    owner = Some(schema.name());
                }
                let at = fields.len();
                let mut embedded = field.embedded_in();
                while let Some(inside) = embedded {
                    // Outermost first: the embedded struct may have the field from another embedded struct.
                    fields.push(inside.name());
                    embedded = inside.field(field.name()).and_then(|field| field.embedded_in());
                }
                debug_assert!(fields.len() - at < 4);
                fields.push(field.name());
            }
        }
        let place = match owner {
            Some(owner) => format!("struct field {owner}.{}", fields.join(".")),
            None => "value".to_owned(),
        };
        Box::new(DecodeError::Type { value, place, ty })
    }

    fn structure(&mut self, schema: SchemaRef<'s>, old: Option<Value>) -> Fallible<Value> {
        self.check_depth()?;
        let declared = schema.is_declared();
        let keeps_unknown = keeps_unknown(schema);
        // Wrong metadata in an embedded resource does not fail the body: coercion handles it.
        let embeds = schema.structural().is_some_and(|structural| structural.embedded_resource);
        let mut object = match old {
            Some(Value::Object(object)) => object,
            _ => Map::new(),
        };
        let merging = !object.is_empty();
        let mut seen = Seen::default();
        let mut failing = None;
        let mut unknown = HashSet::new();
        let mut more = self.parser.open_object()?;
        while more {
            let key = self.parser.key()?;
            match schema.field_index(&key).and_then(|index| Some((index, schema.field_at(index)?))) {
                Some((index, field)) => {
                    let again = seen.insert(index);
                    if again {
                        self.duplicate(&key);
                    }
                    let mut old = if again || merging { object.remove(field.name()) } else { None };
                    if self.replaces_duplicates {
                        old = None;
                        if again && failing == Some(index) {
                            self.failure = None;
                        }
                    }
                    // Null clears a pointer, and leaves a value behind none as it is.
                    if field.is_pointer() && old.is_some() && self.parser.peek_value()? == b'n' {
                        old = None;
                    }
                    let had_failed = self.failure.is_some();
                    self.path.push(Step::Field(schema, field));
                    let value = match embeds && field.name() == "metadata" {
                        true => Some(self.any()?),
                        false if self.replaces_duplicates => self.replaceable(field.ty())?,
                        false => self.value(field.ty(), old)?,
                    };
                    self.path.pop();
                    if self.failure.is_some() && !had_failed {
                        failing = Some(index);
                    }
                    if let Some(value) = value {
                        let is_zero = is_zero(&value, field.ty());
                        if declared && is_zero && matches!(value, Value::Array(_) | Value::Object(_)) {
                            self.empty(field, &value);
                        }
                        let is_told = field.tells_empty_from_none() && !value.is_null();
                        if !declared || field.is_pointer() || !is_zero || is_told {
                            object.insert(field.name(), value);
                        }
                    }
                }
                None if keeps_unknown => {
                    if object.contains_key(key.as_ref()) {
                        self.duplicate(&key);
                    }
                    self.path.push(Step::Key(key.clone()));
                    let value = self.any()?;
                    self.path.pop();
                    object.insert(key, value);
                }
                None => self.unknown_member(schema, key, &mut unknown)?,
            }
            more = self.parser.next_member()?;
        }
        Ok(Value::Object(object))
    }

    /// Reads the value of a field of which a later one may take the place: decoding goes on behind a wrong value.
    fn replaceable(&mut self, schema: SchemaRef<'s>) -> Fallible<Option<Value>> {
        let (start, depth) = (self.parser.position(), self.path.len());
        match self.value(schema, None) {
            Err(error) if matches!(*error, DecodeError::Type { .. } | DecodeError::Value(_)) => {
                self.path.truncate(depth);
                self.parser.rewind(start);
                self.parser.skip()?;
                self.failure.get_or_insert(error);
                Ok(None)
            }
            value => value,
        }
    }

    /// Reads a member that the schema does not have. That of a custom resource is decoded, also in its metadata, as Go
    /// holds it in a map at first: duplicates of it and in it are reported.
    fn unknown_member(
        &mut self,
        schema: SchemaRef<'s>,
        key: Cow<'d, str>,
        seen: &mut HashSet<Cow<'d, str>>,
    ) -> Fallible<()> {
        self.unknown(&key);
        if !(schema.is_structural() || self.replaces_duplicates) || self.muted {
            self.parser.skip()?;
            return Ok(());
        }
        if seen.contains(&key) {
            self.duplicate(&key);
        }
        self.path.push(Step::Key(key.clone()));
        self.any()?;
        self.path.pop();
        seen.insert(key);
        Ok(())
    }

    fn map(&mut self, schema: SchemaRef<'s>, old: Option<Value>) -> Fallible<Value> {
        self.check_depth()?;
        let ty = schema.value();
        let mut object = match old {
            Some(Value::Object(object)) => object,
            _ => Map::new(),
        };
        let earlier = object.len();
        let mut added = Map::new();
        let target = if earlier == 0 { &mut object } else { &mut added };
        let mut more = self.parser.open_object()?;
        while more {
            let key = self.parser.key()?;
            if !target.is_empty() && target.contains_key(key.as_ref()) {
                self.duplicate(&key);
            }
            self.path.push(Step::Key(key.clone()));
            let value = self.value(ty, None)?;
            self.path.pop();
            target.insert(key, value.unwrap_or_else(|| zero(ty)));
            more = self.parser.next_member()?;
        }
        object.extend(added);
        Ok(Value::Object(object))
    }

    fn list(&mut self, schema: SchemaRef<'s>, old: Option<Value>) -> Fallible<Value> {
        self.check_depth()?;
        let ty = schema.item();
        // A duplicate list is decoded into the items of the first one.
        let mut old = match old {
            Some(Value::Array(items)) => items.into_iter(),
            _ => Vec::new().into_iter(),
        };
        let mut items = Vec::new();
        let mut more = self.parser.open_list()?;
        while more {
            self.path.push(Step::Item(items.len()));
            let value = self.value(ty, old.next())?;
            self.path.pop();
            items.push(value.unwrap_or_else(|| zero(ty)));
            more = self.parser.next_item()?;
        }
        Ok(Value::Array(items))
    }

    fn number(&mut self, schema: SchemaRef<'s>) -> Fallible<Option<Value>> {
        let text = self.parser.number()?;
        let value = match schema.ty() {
            Type::Int32 => text.parse::<i32>().ok().map(|value| Value::Number(value.into())),
            Type::Int64 => text.parse::<i64>().ok().map(|value| Value::Number(value.into())),
            _ => text.parse().ok().and_then(Number::from_f64).map(Value::Number),
        };
        if value.is_none() {
            self.mismatch(format!("number {text}"), schema.go_type());
        }
        Ok(value)
    }

    fn bytes(&mut self, schema: SchemaRef<'s>, first: u8) -> Fallible<Option<Value>> {
        match first {
            b'"' => {
                let text = self.parser.string()?;
                match base64::canonical(&text) {
                    Ok(Cow::Borrowed(_)) => Ok(Some(Value::from(text))),
                    Ok(Cow::Owned(text)) => Ok(Some(Value::from(text))),
                    Err(error) => {
                        self.failure.get_or_insert_with(|| DecodeError::value(error));
                        Ok(None)
                    }
                }
            }
            // Bytes may also be a list of small numbers.
            b'[' => {
                let mut bytes = Vec::new();
                let mut more = self.parser.open(b']');
                while more {
                    let first = self.parser.peek_value()?;
                    match first {
                        b'-' | b'0'..=b'9' => {
                            let text = self.parser.number()?;
                            match text.parse::<u8>() {
                                Ok(byte) => bytes.push(byte),
                                Err(_) => self.mismatch(format!("number {text}"), "uint8".to_owned()),
                            }
                        }
                        b'n' => {
                            self.parser.literal()?;
                            bytes.push(0);
                        }
                        first => {
                            self.parser.skip()?;
                            self.mismatch(describe(first).to_owned(), "uint8".to_owned());
                        }
                    }
                    more = self.parser.next_item()?;
                }
                Ok(Some(Value::from(base64::encode(&bytes))))
            }
            _ => self.other_or_null(schema, first, None),
        }
    }

    /// Reads the string that a type with a decoder of its own expects. `None` for `null`.
    fn text(&mut self, first: u8) -> Fallible<Option<Cow<'d, str>>> {
        match first {
            b'"' => self.parser.string().map(Some),
            b'n' => self.parser.literal().map(|()| None),
            _ => {
                self.parser.skip()?;
                Err(self.type_error(describe(first).to_owned(), "string".to_owned()))
            }
        }
    }

    fn time(&mut self, schema: SchemaRef<'s>, text: Cow<'d, str>) -> Fallible<Option<Value>> {
        let micro = schema.ty() == Type::MicroTime;
        if !micro && time::is_canonical_time(&text) {
            return Ok(Some(Value::from(text)));
        }
        let parsed = if micro { parse_micro_time(&text) } else { parse_time(&text) };
        let time = parsed.map_err(DecodeError::value)?;
        if time.is_zero() {
            return Ok(None);
        }
        Ok(Some(Value::from(if micro { time.to_micros() } else { time.to_seconds() })))
    }

    fn quantity(&mut self, first: u8) -> Fallible<Option<Value>> {
        // Go reads the bytes between the quotes without unescaping them, and bare numbers as text.
        let raw = match first {
            b'"' => {
                let raw = self.parser.raw_string()?;
                raw.get(1..raw.len().saturating_sub(1)).unwrap_or_default()
            }
            b'n' => return self.parser.literal().map(|()| None),
            _ => self.parser.skip()?,
        };
        let text = String::from_utf8_lossy(raw);
        let quantity = canonical_quantity(text.trim())?;
        Ok(Some(Value::from(quantity)))
    }

    fn embedded_int(&mut self, first: u8) -> Fallible<Value> {
        let value = match first {
            b'-' | b'0'..=b'9' => {
                let text = self.parser.number()?;
                if let Ok(value) = text.parse::<i32>() {
                    return Ok(Value::Number(value.into()));
                }
                format!("number {text}")
            }
            _ => {
                self.parser.skip()?;
                describe(first).to_owned()
            }
        };
        Err(self.type_error(value, "int32".to_owned()))
    }

    fn union(&mut self, schema: SchemaRef<'s>, union: Union, first: u8) -> Fallible<Option<Value>> {
        let Some((_, inner, other)) = schema.union() else { return self.any().map(Some) };
        match (union, first) {
            (_, b'{') => self.own_decoder(inner),
            // An empty list counts as absent.
            (Union::SchemaOrArray | Union::SchemaOrStringArray, b'[') => {
                let value = self.own_decoder(other)?;
                Ok(value.filter(|value| value.as_array().is_none_or(|items| !items.is_empty())))
            }
            (Union::SchemaOrBool, b't' | b'f') => {
                self.parser.literal()?;
                Ok(Some(Value::Bool(first == b't')))
            }
            (Union::SchemaOrBool, b'n') => {
                self.parser.literal()?;
                Ok(None)
            }
            (Union::SchemaOrBool, _) => {
                self.parser.skip()?;
                Err(DecodeError::value("boolean or JSON schema expected"))
            }
            // Other values count as absent.
            (Union::SchemaOrArray | Union::SchemaOrStringArray, _) => self.parser.skip().map(|_| None),
        }
    }

    /// Reads a value of a type that calls the decoder afresh: not strict, and the first wrong type ends the decoding.
    fn own_decoder(&mut self, schema: SchemaRef<'s>) -> Fallible<Option<Value>> {
        let own_decoder_at = self.own_decoder_at;
        let is_held = self.path.iter().any(|step| matches!(step, Step::Field(..)));
        self.own_decoder_at = own_decoder_at.or_else(|| is_held.then_some(self.path.len()));
        let muted = std::mem::replace(&mut self.muted, true);
        let failure = self.failure.take();
        let value = self.value(schema, None);
        self.own_decoder_at = own_decoder_at;
        self.muted = muted;
        let own_failure = std::mem::replace(&mut self.failure, failure);
        match (value, own_failure) {
            (Ok(_), Some(failure)) => Err(failure),
            (value, _) => value,
        }
    }

    fn any(&mut self) -> Fallible<Value> {
        let depth = self.path.len();
        let Self { parser, path, problems, muted, .. } = self;
        let mut watcher = PathWatcher { path, problems, muted: *muted };
        any::value(parser, depth, &mut watcher)
    }

    fn check_depth(&self) -> Fallible<()> {
        if self.path.len() > MAX_DEPTH {
            return Err(DecodeError::syntax("exceeded max depth"));
        }
        Ok(())
    }

    /// Reports an empty list or map.
    fn empty(&mut self, field: FieldRef<'_>, value: &Value) {
        if matches!(field.ty().ty(), Type::List | Type::Map) {
            let finding = |path| EmptyField { path, value: value.clone() };
            self.empty_fields.report(|paths| join(&self.path, field.name(), paths), finding);
        }
    }

    fn duplicate(&mut self, key: &str) {
        if !self.muted {
            self.problems.report(|paths| join(&self.path, key, paths), StrictProblem::DuplicateField);
        }
    }

    fn unknown(&mut self, key: &str) {
        if !self.muted {
            self.problems.report(|paths| join(&self.path, key, paths), StrictProblem::UnknownField);
        }
    }
}

fn join(path: &[Step<'_, '_>], key: &str, paths: Paths) -> String {
    let mut out = String::new();
    let name = |out: &mut String, name: &str| {
        if !out.is_empty() {
            out.push('.');
        }
        out.push_str(name);
    };
    for step in path {
        match step {
            Step::Field(_, field) => name(&mut out, field.name()),
            Step::Key(_) if paths == Paths::WithoutKeys => {}
            Step::Key(key) => name(&mut out, key),
            Step::Item(index) => out.push_str(&format!("[{index}]")),
        }
    }
    name(&mut out, key);
    out
}

struct PathWatcher<'a, 'd, 's> {
    path: &'a mut Vec<Step<'d, 's>>,
    problems: &'a mut Findings<StrictProblem>,
    muted: bool,
}

impl Watcher for PathWatcher<'_, '_, '_> {
    fn duplicate(&mut self, key: &str) {
        if !self.muted {
            self.problems.report(|paths| join(self.path, key, paths), StrictProblem::DuplicateField);
        }
    }

    fn enter_key(&mut self, key: &str) {
        self.path.push(Step::Key(Cow::Owned(key.to_owned())));
    }

    fn enter_item(&mut self, index: usize) {
        self.path.push(Step::Item(index));
    }

    fn leave(&mut self) {
        self.path.pop();
    }
}

/// The fields of a struct that have been read.
#[derive(Default)]
struct Seen {
    first: u128,
    rest: Vec<usize>,
}

impl Seen {
    /// Inserts a field; returns whether it was read before.
    fn insert(&mut self, index: usize) -> bool {
        if index < 128 {
            let bit = 1 << index;
            let again = self.first & bit != 0;
            self.first |= bit;
            return again;
        }
        let again = self.rest.contains(&index);
        if !again {
            self.rest.push(index);
        }
        again
    }
}

/// Whether a custom resource's schema preserves unknown fields.
fn keeps_unknown(schema: SchemaRef<'_>) -> bool {
    schema.structural().is_some_and(|structural| structural.preserve_unknown_fields)
}

/// The value that a list or map holds for a `null`.
pub(crate) fn zero(schema: SchemaRef<'_>) -> Value {
    match schema.ty() {
        Type::Bool => Value::Bool(false),
        Type::Int32 | Type::Int64 | Type::IntOrString => Value::Number(0.into()),
        Type::Float64 => Value::Number(0.into()),
        Type::String | Type::Bytes => Value::from(""),
        Type::Quantity => Value::from("0"),
        Type::Duration => Value::from("0s"),
        Type::Struct if !schema.is_structural() => Value::Object(Map::new()),
        Type::Struct
        | Type::Time
        | Type::MicroTime
        | Type::RawExtension
        | Type::FieldsV1
        | Type::Json
        | Type::Any
        | Type::List
        | Type::Map
        | Type::Union(_) => Value::Null,
    }
}

/// Whether a value is the zero value of its type. A canonical tree has no zero value in a field that is not a pointer.
pub(crate) fn is_zero(value: &Value, schema: SchemaRef<'_>) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(_) | Value::Number(_) if matches!(schema.ty(), Type::Json | Type::RawExtension) => false,
        Value::Bool(value) => !value,
        Value::Number(number) => match number.as_i64() {
            Some(integer) => integer == 0,
            None => number.as_f64() == Some(0.0),
        },
        Value::String(text) => match schema.ty() {
            Type::Quantity => text == "0",
            Type::Duration => text == "0s",
            // An empty string differs from the integer zero.
            Type::IntOrString | Type::Json | Type::RawExtension | Type::Any => false,
            _ => text.is_empty(),
        },
        Value::Array(items) => items.is_empty() && schema.ty() == Type::List,
        Value::Object(object) => object.is_empty() && matches!(schema.ty(), Type::Map | Type::Struct),
    }
}
