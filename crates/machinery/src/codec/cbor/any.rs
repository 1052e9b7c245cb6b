//! Decodes CBOR without a schema, as the reference decodes into `interface{}`.

use pintle_tree::{Number, Value};

use super::decode::{Count, Decoder, Failure, First, Step, unrecognized};
use super::reader::Major;
use super::well_formed;
use crate::codec::error::{DecodeError, Fallible};
use crate::codec::weight::{ITEM, LIST, Weight};
use crate::codec::{Timestamp, parse_time};

/// Decodes a client's body that is a map, without a schema: the memory of the tree is bounded in proportion to the
/// body.
///
/// # Errors
/// When the body is not CBOR, not a map, too deep, or has a duplicate key or a value that JSON does not have.
pub fn decode_any_body(bytes: &[u8]) -> Result<Value, DecodeError> {
    decode_within(bytes, Weight::of_body(bytes.len()))
}

/// As [`decode_any_body`], for bytes that the server wrote.
///
/// # Errors
/// As [`decode_any_body`], but for the memory.
pub fn decode_any(bytes: &[u8]) -> Result<Value, DecodeError> {
    decode_within(bytes, Weight::UNLIMITED)
}

fn decode_within(bytes: &[u8], weight: Weight) -> Result<Value, DecodeError> {
    let read = || -> Fallible<Value> {
        well_formed::check(bytes)?;
        let mut decoder = Decoder::new(bytes, weight);
        decoder.root_map().map_err(Failure::into_error)
    };
    read().map_err(|error| *error)
}

impl Decoder<'_> {
    /// The value of a body that is a map, or `null`.
    pub(super) fn root_map(&mut self) -> Step<Value> {
        const TYPE: &str = "map[string]interface {}";
        self.enter()?;
        if let Some(tag) = self.tag()? {
            let value = self.root_map();
            self.leave(tag);
            return value;
        }
        let start = self.reader.clone();
        let head = self.reader.head()?;
        match head.major {
            Major::Map => self.object(head).map(Value::Object),
            Major::Primitive if head.info == 22 => Ok(Value::Object(pintle_tree::Map::new())),
            Major::Primitive if !matches!(head.info, 20 | 21 | 25..28) => Err(unrecognized(head)),
            major => {
                if major == Major::Text {
                    self.text(head)?;
                } else {
                    self.reader = start;
                    self.reader.skip()?;
                }
                Err(Failure::of_head(head, TYPE))
            }
        }
    }

    /// Any value.
    pub(super) fn any(&mut self) -> Step<Value> {
        self.enter()?;
        if self.next() == Some(Major::Tag) {
            let start = self.reader.clone();
            let tag = self.reader.head()?.value;
            if matches!(tag, 0 | 1) {
                return self.tagged_time(tag);
            }
            self.reader = start;
            let Some(tag) = self.tag()? else { return Ok(Value::Null) };
            let value = self.any();
            self.leave(tag);
            return value;
        }
        let head = self.reader.head()?;
        let overflow = |text: String| Err(Failure::noted(head.major, "int64", text));
        match (head.major, i64::try_from(head.value)) {
            (Major::Positive, Ok(value)) => Ok(Value::Number(value.into())),
            (Major::Positive, Err(_)) => overflow(format!("{} overflows Go's int64", head.value)),
            (Major::Negative, Ok(value)) => Ok(Value::Number((-1 - value).into())),
            (Major::Negative, Err(_)) => {
                overflow(format!("-{} overflows Go's int64", u128::from(head.value) + 1))
            }
            (Major::Bytes | Major::Text, _) => self.text(head).map(Value::from),
            (Major::Array, _) => {
                self.weigh(LIST)?;
                let mut items = Vec::new();
                let mut first = First::default();
                let mut count = Count::of(head);
                while count.next(&mut self.reader).is_some() {
                    self.weigh(ITEM)?;
                    let step = self.any();
                    items.push(first.note(step)?.unwrap_or(Value::Null));
                }
                first.end(Value::Array(items))
            }
            (Major::Map, _) => self.object(head).map(Value::Object),
            (Major::Primitive, _) => match head.info {
                20 | 21 => Ok(Value::Bool(head.info == 21)),
                22 => Ok(Value::Null),
                25..28 => Ok(head.float().and_then(Number::from_f64).map_or(Value::Null, Value::Number)),
                _ => Err(unrecognized(head)),
            },
            // Tags were read above.
            (Major::Tag, _) => Ok(Value::Null),
        }
    }

    /// A time behind its tag, as text.
    fn tagged_time(&mut self, tag: u64) -> Step<Value> {
        let head = self.reader.head()?;
        let time = match (tag, head.major) {
            (0, _) => {
                let text = self.text(head)?;
                // The text stays as it is if it is a time.
                parse_time(&text).map_err(|error| {
                    Failure::value(format!("cbor: cannot set {text} for time.Time: {error}"))
                })?;
                return Ok(Value::from(text));
            }
            (_, Major::Positive) => i64::try_from(head.value).ok().map(|seconds| (seconds, 0)),
            (_, Major::Negative) => i64::try_from(head.value).ok().map(|value| (-1 - value, 0)),
            _ => head.float().map(|float| {
                let nanos = (float.fract() * 1e9) as i64;
                let seconds = float.trunc() as i64;
                (seconds.saturating_add(nanos.div_euclid(1_000_000_000)), nanos.rem_euclid(1_000_000_000))
            }),
        };
        // Years that RFC 3339 cannot write.
        let (seconds, nanos) = time
            .filter(|(seconds, _)| (-62_167_219_200..253_402_300_800).contains(seconds))
            .ok_or_else(|| {
                Failure::value(
                    "cbor: decoded time cannot be represented in RFC3339 format with sub-second precision: \
                     Time.MarshalText: year outside of range [0,9999]",
                )
            })?;
        let nanos = u32::try_from(nanos).unwrap_or_default();
        let text = Timestamp { seconds, nanos: 0 }.to_seconds();
        let fraction = match nanos {
            0 => String::new(),
            nanos => format!(".{nanos:09}").trim_end_matches('0').to_owned(),
        };
        Ok(Value::from(format!("{}{fraction}Z", text.trim_end_matches('Z'))))
    }
}
