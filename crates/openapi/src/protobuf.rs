//! Encodes gnostic's protobuf messages for OpenAPI.

use pintle_machinery::{Map, Value, ValueExt, codec::yaml};

/// The encoder of one message.
#[derive(Default)]
pub(crate) struct Message(pub(crate) Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push((value as u8) | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    /// Writes bytes, or a string even when empty.
    pub(crate) fn bytes(&mut self, number: u32, bytes: &[u8]) {
        self.varint(u64::from(number) << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    /// Writes a string unless it is empty.
    pub(crate) fn text(&mut self, number: u32, text: &str) {
        if !text.is_empty() {
            self.bytes(number, text.as_bytes());
        }
    }

    /// Writes a boolean unless it is false.
    pub(crate) fn boolean(&mut self, number: u32, value: bool) {
        if value {
            self.boolean_always(number, value);
        }
    }

    /// Writes a boolean even when false, for a member of a oneof.
    pub(crate) fn boolean_always(&mut self, number: u32, value: bool) {
        self.varint(u64::from(number) << 3);
        self.varint(u64::from(value));
    }

    /// Writes a double even when zero, for a member of a oneof.
    pub(crate) fn double(&mut self, number: u32, value: f64) {
        self.varint(u64::from(number) << 3 | 1);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    /// Writes a message as a field.
    pub(crate) fn message(&mut self, number: u32, message: &Message) {
        self.bytes(number, &message.0);
    }

    /// Writes a message as the only field of another.
    pub(crate) fn within(&mut self, number: u32, inner: u32, message: &Message) {
        let mut outer = Message::default();
        outer.message(inner, message);
        self.message(number, &outer);
    }

    /// Writes one entry of a map.
    pub(crate) fn named(&mut self, number: u32, name: &str, message: &Message) {
        let mut entry = Message::default();
        entry.text(1, name);
        entry.message(2, message);
        self.message(number, &entry);
    }

    /// Writes string members of an object.
    pub(crate) fn texts_of(&mut self, object: &Value, members: &[(u32, &str)]) {
        for (number, member) in members {
            let text = object.field(member).and_then(Value::as_str);
            self.text(*number, text.unwrap_or_default());
        }
    }

    /// Writes a member of an object that is a list of strings.
    pub(crate) fn list_of(&mut self, object: &Value, number: u32, member: &str) {
        for item in object.items_at(member) {
            self.bytes(number, item.as_str().unwrap_or_default().as_bytes());
        }
    }

    /// Writes a member of an object that is a list of any values.
    pub(crate) fn anys_of(&mut self, object: &Value, number: u32, member: &str) {
        for item in object.items_at(member) {
            self.message(number, &any(item));
        }
    }

    /// Writes a member of an object that is any value.
    pub(crate) fn any_of(&mut self, object: &Value, number: u32, member: &str) {
        if let Some(value) = object.field(member) {
            self.message(number, &any(value));
        }
    }

    /// Writes a boolean, even when false, as the only field of another message.
    pub(crate) fn boolean_within(&mut self, number: u32, inner: u32, value: bool) {
        let mut outer = Message::default();
        outer.boolean_always(inner, value);
        self.message(number, &outer);
    }

    /// Writes the external documentation of a schema.
    pub(crate) fn external_docs(&mut self, schema: &Value, number: u32) {
        if let Some(docs) = schema.field("externalDocs") {
            let mut message = Message::default();
            message.texts_of(docs, &[(1, "description"), (2, "url")]);
            self.message(number, &message);
        }
    }

    /// Writes the limits of a schema: thirteen fields in the same order in all versions, from `multipleOf` with the
    /// number `first`.
    pub(crate) fn limits(&mut self, schema: &Value, first: u32) {
        for (number, member) in (first..).zip(LIMITS) {
            self.limit(schema, number, member);
        }
    }

    /// Writes one of the limits of a schema, a parameter or a header.
    pub(crate) fn limit(&mut self, schema: &Value, number: u32, member: &str) {
        match schema.field(member) {
            None => {}
            Some(Value::Bool(value)) => self.boolean(number, *value),
            Some(Value::String(text)) => self.text(number, text),
            Some(value) if DOUBLES.contains(&member) => {
                // Zero is omitted.
                if let Some(value) = value.as_f64().filter(|value| *value != 0.0) {
                    self.double(number, value);
                }
            }
            Some(value) => {
                if let Some(value) = value.as_i64().filter(|value| *value != 0) {
                    self.varint(u64::from(number) << 3);
                    self.varint(value as u64);
                }
            }
        }
    }

    /// Writes one entry of a map of any values.
    pub(crate) fn named_any(&mut self, number: u32, name: &str, value: &Value) {
        self.named(number, name, &any(value));
    }

    /// Writes the members whose name starts with `x-`.
    pub(crate) fn extensions(&mut self, object: &Value, number: u32) {
        let members: Option<&Map> = object.as_object();
        for (name, value) in members.into_iter().flatten().filter(|(name, _)| name.starts_with("x-")) {
            self.named(number, name, &any(value));
        }
    }
}

const LIMITS: [&str; 13] = [
    "multipleOf",
    "maximum",
    "exclusiveMaximum",
    "minimum",
    "exclusiveMinimum",
    "maxLength",
    "minLength",
    "pattern",
    "maxItems",
    "minItems",
    "uniqueItems",
    "maxProperties",
    "minProperties",
];
const DOUBLES: [&str; 3] = ["multipleOf", "maximum", "minimum"];

/// Encodes any value as YAML text in the block style.
fn any(value: &Value) -> Message {
    let mut any = Message::default();
    any.bytes(2, &yaml::encode_any(value));
    any
}
