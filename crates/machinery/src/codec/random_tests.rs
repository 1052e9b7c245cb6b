//! Tests that random objects of random kinds survive a round trip through every representation.

use pintle_schema::{Schema, SchemaRef, Type};
use pintle_tree::{Map, Value, json};
use proptest::prelude::*;

use super::{Timestamp, json as json_codec, protobuf, yaml};
use pintle_go_forms::{base64, format_duration};

/// Deep enough for containers in pods in templates, shallow enough to keep objects small.
const MAX_DEPTH: u32 = 9;

/// A generator of canonical trees, driven by a seed. (A shrunk tree would help less than its seed.)
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// A built-in kind (group, version, kind), and an object of it.
    pub(crate) fn kind(&mut self) -> ((&'static str, &'static str, &'static str), Value) {
        let kinds: Vec<_> = Schema::builtin().kinds().collect();
        let kind = kinds[self.below(kinds.len() as u64) as usize];
        ((kind.group, kind.version, kind.kind), Value::Object(self.object(kind.schema, 0)))
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        (self.next() >> 16) % bound
    }

    pub(crate) fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len() as u64) as usize]
    }

    fn text(&mut self) -> &'static str {
        self.pick(&[
            "a", "name-1", "", "true", "5", "0x10", "a b", "y", "null", "a: b", "- x", "#", "line 1\nline 2\n", " x ",
            "\t", "é", "<&>", "\u{1f600}", "\u{2028}", "\"q\"", "'q'", "\\", "2024-01-01", "1:30", "~", "\u{0}", "\u{7f}",
            "a very long text that has to be folded somewhere because it is longer than eighty columns, is it not?",
            "trailing \nspace", "\n", "x\r\ny", "|", "{}", "[a", "%", "\u{feff}", "<<",
        ])
    }

    pub(crate) fn raw(&mut self, depth: u32) -> Value {
        match self.below(if depth > 4 { 5 } else { 7 }) {
            0 => json!(self.next() as i64),
            1 => json!(self.text()),
            2 => json!(self.below(2) == 0),
            3 => Value::Null,
            4 => json!((self.next() >> 40) as f64 / 7.0 + 0.25),
            5 => (0..self.below(3)).map(|_| self.raw(depth + 1)).collect(),
            _ => Value::Object(
                (0..self.below(3)).map(|_| (self.text().to_owned(), self.raw(depth + 1))).collect(),
            ),
        }
    }

    /// A value that is not zero; `None` where none is shallow enough.
    fn value(&mut self, schema: SchemaRef<'_>, depth: u32) -> Option<Value> {
        Some(match schema.ty() {
            Type::Bool => json!(true),
            Type::Int32 => json!(
                (self.next() as i32).saturating_abs().saturating_add(1)
                    * if self.below(2) == 0 { -1 } else { 1 }
            ),
            Type::Int64 => json!(self.next() as i64),
            Type::Float64 => json!(self.below(1000) as f64 + 0.5),
            Type::String => json!(["x", self.text()][self.below(2) as usize]),
            Type::Bytes => {
                let bytes: Vec<u8> = (0..=self.below(5)).map(|byte| byte as u8).collect();
                json!(base64::encode(&bytes))
            }
            Type::Time => json!(Timestamp { seconds: self.below(1 << 32) as i64, nanos: 0 }.to_seconds()),
            Type::MicroTime => {
                json!(
                    Timestamp {
                        seconds: self.below(1 << 32) as i64,
                        nanos: self.below(1_000_000) as u32 * 1000
                    }
                    .to_micros()
                )
            }
            Type::Duration => json!(format_duration((self.next() >> 1) as i64 | 1)),
            Type::Quantity => json!(self.pick(&["1", "100m", "1Gi", "+1", "1e3", "-5", "1500m", "7n"])),
            Type::IntOrString => [json!(8080), json!("50%"), json!("")][self.below(3) as usize].clone(),
            Type::RawExtension => json!({"k": self.raw(0)}),
            Type::FieldsV1 => json_codec::closed(&json!({"k": self.raw(0)})),
            Type::Json | Type::Any => match self.raw(0) {
                Value::Null => json!(1),
                value => value,
            },
            Type::Struct if depth < MAX_DEPTH => Value::Object(self.object(schema, depth)),
            Type::List if depth < MAX_DEPTH => {
                let items =
                    (0..=self.below(2)).filter_map(|_| self.value(schema.item(), depth + 1)).collect();
                Value::Array(items)
            }
            Type::Map if depth < MAX_DEPTH => {
                let keys = (0..=self.below(2)).map(|_| self.text().to_owned());
                let keys: Vec<String> = keys.collect();
                let entries =
                    keys.into_iter().filter_map(|key| Some((key, self.value(schema.value(), depth + 1)?)));
                Value::Object(entries.collect())
            }
            Type::Union(_) if depth < MAX_DEPTH => {
                let (_, inner, other) = schema.union()?;
                let side = if self.below(2) == 0 { inner } else { other };
                // An empty list is written as null, like a union without a value.
                self.value(side, depth + 1).filter(|value| *value != json!([]))?
            }
            Type::Struct | Type::List | Type::Map | Type::Union(_) => return None,
        })
    }

    fn object(&mut self, schema: SchemaRef<'_>, depth: u32) -> Map {
        let mut object = Map::new();
        // Most of the outer fields, fewer on each deeper level.
        let present = [80, 70, 50, 40, 40].get(depth as usize).copied().unwrap_or(25);
        for field in schema.fields() {
            // Kind and apiVersion of a nested struct are not part of a message.
            if self.below(100) >= present
                || (depth > 0 && field.number() == 0 && ["kind", "apiVersion"].contains(&field.name()))
            {
                continue;
            }
            if let Some(value) = self.value(field.ty(), depth + 1)
                && (field.is_pointer() || !json_codec::is_zero(&value, field.ty()))
            {
                object.insert(field.name(), value);
            }
        }
        object
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn random_objects_come_back(seed in 1u64..) {
        let ((group, version, kind), tree) = Random(seed).kind();
        let schema = Schema::builtin().by_kind(group, version, kind).unwrap();

        let text = json_codec::encode(&tree, schema);
        let decoded = json_codec::decode(&text, schema).unwrap();
        prop_assert_eq!(&decoded.value, &tree, "JSON of {}", kind);
        prop_assert!(decoded.problems.is_empty());
        prop_assert_eq!(json_codec::encode(&decoded.value, schema), text);

        let text = yaml::encode(&tree, schema);
        let decoded = yaml::decode(&text, schema);
        let text = String::from_utf8(text).unwrap();
        prop_assert_eq!(decoded.as_ref().map(|decoded| &decoded.value), Ok(&tree), "YAML of {}:\n{}", kind, text);

        if let Some(message) = protobuf::encode(&tree, schema) {
            let decoded = protobuf::decode(&message, schema).unwrap();
            prop_assert_eq!(&decoded.value, &tree, "protobuf of {}", kind);
        }
    }
}
