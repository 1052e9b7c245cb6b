//! JSON without a schema.

use serde_json::{Map, Number, Value};

use super::parser::Parser;
use crate::codec::MAX_DEPTH;
use crate::codec::error::{DecodeError, Fallible};
use crate::codec::weight::Weight;

/// Who is told about duplicate keys.
pub(super) trait Watcher {
    fn duplicate(&mut self, key: &str);
    fn enter_key(&mut self, key: &str);
    fn enter_item(&mut self, index: usize);
    fn leave(&mut self);
    fn number(&mut self, _: &str) {}
}

/// Tells nobody, for raw JSON.
pub(super) struct Unwatched;

impl Watcher for Unwatched {
    fn duplicate(&mut self, _: &str) {}
    fn enter_key(&mut self, _: &str) {}
    fn enter_item(&mut self, _: usize) {}
    fn leave(&mut self) {}
}

/// Reads a whole text as one value. Errors are in Go's words.
pub fn decode_any(bytes: &[u8]) -> Result<Value, DecodeError> {
    decode_raw(bytes).map_err(|error| *error)
}

/// As [`decode_any`], for what a client sent: the tree is not much larger than the text.
pub fn decode_any_body(bytes: &[u8]) -> Result<Value, DecodeError> {
    decode_within(bytes, 0, &mut Weight::of_body(bytes.len())).map_err(|error| *error)
}

/// As [`decode_any`], for an answer to a question of so many bytes: the tree is not much larger than that of a body of
/// twice as many.
pub fn decode_any_answer(bytes: &[u8], question: usize) -> Result<Value, DecodeError> {
    let mut weight = Weight::of_body(question.saturating_mul(2));
    decode_within(bytes, 0, &mut weight).map_err(|error| *error)
}

/// As [`decode_any`], for other decoders.
pub(crate) fn decode_raw(bytes: &[u8]) -> Fallible<Value> {
    decode_within(bytes, 0, &mut Weight::UNLIMITED.clone())
}

/// As [`decode_raw`], for what means the same to all readers: each key is there once, and integers fit 64 bits.
pub(crate) fn decode_plain(bytes: &[u8], weight: &mut Weight) -> Fallible<Value> {
    struct Ambiguous(bool);
    impl Watcher for Ambiguous {
        fn duplicate(&mut self, _: &str) {
            self.0 = true;
        }
        fn number(&mut self, text: &str) {
            self.0 |= !text.contains(['.', 'e', 'E']) && text.parse::<i64>().is_err();
        }
        fn enter_key(&mut self, _: &str) {}
        fn enter_item(&mut self, _: usize) {}
        fn leave(&mut self) {}
    }
    let mut parser = Parser::new(bytes, *weight);
    let mut watcher = Ambiguous(false);
    let value = value(&mut parser, 0, &mut watcher)?;
    parser.end()?;
    *weight = parser.weight();
    if watcher.0 {
        return Err(DecodeError::syntax("the value is ambiguous"));
    }
    Ok(value)
}

/// As [`decode_raw`], for a text that is so deep inside a value, of which it may take what is left.
pub(crate) fn decode_within(bytes: &[u8], depth: usize, weight: &mut Weight) -> Fallible<Value> {
    let mut parser = Parser::new(bytes, *weight);
    let value = value(&mut parser, depth, &mut Unwatched)?;
    parser.end()?;
    *weight = parser.weight();
    Ok(value)
}

pub(super) fn value(parser: &mut Parser<'_>, depth: usize, watcher: &mut impl Watcher) -> Fallible<Value> {
    if depth > MAX_DEPTH {
        return Err(DecodeError::syntax("exceeded max depth"));
    }
    match parser.peek_value()? {
        b'{' => {
            let mut object = Map::new();
            let mut more = parser.open_object()?;
            while more {
                let key = parser.key()?;
                if object.contains_key(key.as_ref()) {
                    watcher.duplicate(&key);
                }
                watcher.enter_key(&key);
                let value = value(parser, depth + 1, watcher)?;
                watcher.leave();
                object.insert(key.into_owned(), value);
                more = parser.next_member()?;
            }
            Ok(Value::Object(object))
        }
        b'[' => {
            let mut items = Vec::new();
            let mut more = parser.open_list()?;
            while more {
                watcher.enter_item(items.len());
                items.push(value(parser, depth + 1, watcher)?);
                watcher.leave();
                more = parser.next_item()?;
            }
            Ok(Value::Array(items))
        }
        b'"' => Ok(Value::String(parser.string()?.into_owned())),
        b't' => parser.literal().map(|()| Value::Bool(true)),
        b'f' => parser.literal().map(|()| Value::Bool(false)),
        b'n' => parser.literal().map(|()| Value::Null),
        _ => {
            let text = parser.number()?;
            watcher.number(text);
            number(text).ok_or_else(|| {
                Box::new(DecodeError::Type {
                    value: format!("number {text}"),
                    place: "value".to_owned(),
                    ty: "float64".to_owned(),
                })
            })
        }
    }
}

/// An integer where it is one and fits 64 bits, else a double; `None` when that overflows.
pub(super) fn number(text: &str) -> Option<Value> {
    if !text.contains('.')
        && let Ok(integer) = text.parse::<i64>()
    {
        return Some(Value::Number(integer.into()));
    }
    let float: f64 = text.parse().ok()?;
    Number::from_f64(float).map(Value::Number)
}
