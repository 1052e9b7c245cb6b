//! Decodes JSON without a schema.

use pintle_tree::{Map, Number, Value};

use super::parser::Parser;
use crate::codec::MAX_DEPTH;
use crate::codec::error::{DecodeError, Fallible};
use crate::codec::weight::Weight;

/// Receives the keys and positions of a value while it is parsed, for reports of duplicate keys.
pub(super) trait Watcher {
    fn duplicate(&mut self, key: &str);
    fn enter_key(&mut self, key: &str);
    fn enter_item(&mut self, index: usize);
    fn leave(&mut self);
    fn number(&mut self, _: &str) {}
}

/// Ignores all reports, for raw JSON.
pub(super) struct Unwatched;

impl Watcher for Unwatched {
    fn duplicate(&mut self, _: &str) {}
    fn enter_key(&mut self, _: &str) {}
    fn enter_item(&mut self, _: usize) {}
    fn leave(&mut self) {}
}

/// Decodes a whole text as one value.
///
/// # Errors
/// Go's message, when the text is not one JSON value.
pub fn decode_any(bytes: &[u8]) -> Result<Value, DecodeError> {
    decode_raw(bytes).map_err(|error| *error)
}

/// As [`decode_any`], for a client's body: the memory of the tree is bounded in proportion to the text.
///
/// # Errors
/// As [`decode_any`], and when the tree would take too much memory.
pub fn decode_any_body(bytes: &[u8]) -> Result<Value, DecodeError> {
    decode_within(bytes, 0, &mut Weight::of_body(bytes.len())).map_err(|error| *error)
}

/// As [`decode_any`], for the response to a request of `question` bytes: the memory of the tree is bounded as for a
/// body of twice that size.
///
/// # Errors
/// As [`decode_any`], and when the tree would take too much memory.
pub fn decode_any_answer(bytes: &[u8], question: usize) -> Result<Value, DecodeError> {
    decode_within(bytes, 0, &mut Weight::of_answer(question)).map_err(|error| *error)
}

/// As [`decode_any`], for other decoders.
pub(crate) fn decode_raw(bytes: &[u8]) -> Fallible<Value> {
    decode_within(bytes, 0, &mut Weight::UNLIMITED.clone())
}

/// As [`decode_raw`], but only for texts that all readers interpret alike: keys are unique, and integers fit 64 bits.
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

/// As [`decode_raw`], for a text at this depth inside another value. Uses the remaining `weight` of that value.
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
                object.insert(key, value);
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
        b'"' => Ok(Value::from(parser.string()?)),
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

/// Returns an integer if the text is one that fits 64 bits, otherwise a double; `None` when the double overflows.
pub(super) fn number(text: &str) -> Option<Value> {
    if !text.contains('.')
        && let Ok(integer) = text.parse::<i64>()
    {
        return Some(Value::Number(integer.into()));
    }
    let float: f64 = text.parse().ok()?;
    Number::from_f64(float).map(Value::Number)
}
