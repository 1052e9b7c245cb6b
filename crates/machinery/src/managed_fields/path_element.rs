//! The elements of field paths, and their encoding in `FieldsV1`.

use crate::{
    Map, Text, Value,
    codec::json::{encode_any, write_string},
    text::go_format,
};
use pintle_go_forms::quote;
use pintle_tree::Number;
use serde::de::DeserializeOwned;
use std::{cmp::Ordering, fmt};

/// One step from a value to a part of it.
#[derive(Debug, Clone, PartialEq)]
pub enum PathElement {
    /// A field of a struct, or a key of a map.
    Field(String),
    /// An item of a list, by the values of its key fields.
    Key(Map),
    /// An item of a set, by its value.
    Value(Value),
    /// An item of a list, by its position.
    Index(i64),
}

impl PathElement {
    /// Parses an encoded element; `None` for an unknown kind.
    ///
    /// # Errors
    /// When the element is malformed.
    pub fn parse(text: &str) -> Result<Option<PathElement>, String> {
        let (Some(kind), Some(separator)) = (text.as_bytes().first(), text.as_bytes().get(1)) else {
            return Err("key must be 2 characters long:".to_owned());
        };
        let rest = match separator {
            b':' => text.get(2..).unwrap_or_default(),
            _ => return Err(format!("missing colon: {text}")),
        };
        Ok(Some(match kind {
            b'f' => PathElement::Field(rest.to_owned()),
            b'k' => PathElement::Key(first::<Option<Map>>(rest)?.unwrap_or_default()),
            b'v' => PathElement::Value(first(rest)?),
            b'i' => PathElement::Index(rest.parse().map_err(|_| format!("invalid index: {rest}"))?),
            _ => return Ok(None),
        }))
    }
}

/// The first JSON value of a text. As Kubernetes does, it leaves the rest unread.
fn first<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter();
    let value = values.next().ok_or_else(|| "a value is missing".to_owned())?;
    value.map_err(|error| error.to_string())
}

impl fmt::Display for PathElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PathElement::Field(name) => write!(f, "f:{name}"),
            PathElement::Key(keys) => {
                let mut text = b"{".to_vec();
                for (at, (name, value)) in keys.iter().enumerate() {
                    if at > 0 {
                        text.push(b',');
                    }
                    write_text(&mut text, name);
                    text.push(b':');
                    write_value(&mut text, value);
                }
                write!(f, "k:{}}}", String::from_utf8_lossy(&text))
            }
            PathElement::Value(value) => {
                let mut text = Vec::new();
                write_value(&mut text, value);
                write!(f, "v:{}", String::from_utf8_lossy(&text))
            }
            PathElement::Index(index) => write!(f, "i:{index}"),
        }
    }
}

/// Encodes a value that identifies an item. The negative exponent of a number has two digits here.
pub(super) fn write_value(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::String(text) => write_text(out, text),
        value => {
            let text = encode_any(value);
            match text.as_slice() {
                [digits @ .., b'e', b'-', digit] if value.is_number() => {
                    out.extend_from_slice(digits);
                    out.extend_from_slice(b"e-0");
                    out.push(*digit);
                }
                text => out.extend_from_slice(text),
            }
        }
    }
}

/// Encodes a text. Structured-merge-diff has no short escapes for two of the control characters.
pub(super) fn write_text(out: &mut Vec<u8>, text: &str) {
    if !text.contains(['\u{8}', '\u{c}']) {
        return write_string(out, text);
    }
    let mut encoded = Vec::new();
    write_string(&mut encoded, text);
    let mut bytes = encoded.iter();
    while let Some(byte) = bytes.next() {
        match (byte, (*byte == b'\\').then(|| bytes.next()).flatten()) {
            (_, Some(b'b')) => out.extend_from_slice(b"\\u0008"),
            (_, Some(b'f')) => out.extend_from_slice(b"\\u000c"),
            (byte, escaped) => {
                out.push(*byte);
                out.extend(escaped);
            }
        }
    }
}

/// Encodes the element of a field.
pub(super) fn field(name: &str) -> Text {
    let mut element = Text::with_capacity(name.len() + 2);
    element.push_str("f:");
    element.push_str(name);
    element
}

/// Orders encoded elements as in `FieldsV1` and in messages: fields, items by key, items by value, items by position;
/// numbers compare as numbers. Each element is given as text and parsed.
pub(super) fn order(a: (&str, Option<&PathElement>), b: (&str, Option<&PathElement>)) -> Ordering {
    let rank = |(text, element): (&str, Option<&PathElement>)| match element {
        _ if text == "." => 0,
        Some(PathElement::Field(_)) => 1,
        Some(PathElement::Key(_)) => 2,
        Some(PathElement::Value(_)) => 3,
        Some(PathElement::Index(_)) => 4,
        None => 5,
    };
    rank(a).cmp(&rank(b)).then_with(|| match (a.1, b.1) {
        (Some(PathElement::Key(a)), Some(PathElement::Key(b))) => {
            let pairs = a.iter().zip(b);
            let mut orders =
                pairs.map(|((a, left), (b, right))| a.cmp(b).then_with(|| order_of_values(left, right)));
            orders.find(|order| order.is_ne()).unwrap_or_else(|| a.len().cmp(&b.len()))
        }
        (Some(PathElement::Value(a)), Some(PathElement::Value(b))) => order_of_values(a, b),
        (Some(PathElement::Index(a)), Some(PathElement::Index(b))) => a.cmp(b),
        _ => a.0.cmp(b.0),
    })
}

/// Orders numbers, texts, booleans, null; keys and sets hold no other values.
fn order_of_values(a: &Value, b: &Value) -> Ordering {
    let rank = |value: &Value| match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    };
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            // Integers with equal doubles still differ, and doubles sort among them: the order is transitive.
            let double = |number: &Number| number.as_f64().unwrap_or_default();
            let exact = |number: &Number| {
                let integer = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
                integer.unwrap_or_else(|| double(number) as i128)
            };
            let by_double = double(a).partial_cmp(&double(b)).unwrap_or(Ordering::Equal);
            by_double.then_with(|| exact(a).cmp(&exact(b)))
        }
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        _ => rank(a).cmp(&rank(b)),
    }
}

/// Formats an encoded element for messages.
pub(super) fn display(element: &str) -> String {
    fn scalar(value: &Value) -> String {
        match value {
            Value::String(text) => quote(text),
            Value::Array(items) => {
                let items: Vec<String> = items.iter().map(scalar).collect();
                format!("[{}]", items.join(","))
            }
            Value::Object(members) => {
                members.iter().map(|(name, value)| format!("{name}={}", scalar(value))).collect()
            }
            Value::Null => "null".to_owned(),
            value => go_format(value),
        }
    }
    match PathElement::parse(element) {
        Ok(Some(PathElement::Field(name))) => format!(".{name}"),
        Ok(Some(PathElement::Key(keys))) => {
            let keys: Vec<String> =
                keys.iter().map(|(name, value)| format!("{name}={}", scalar(value))).collect();
            format!("[{}]", keys.join(","))
        }
        Ok(Some(PathElement::Value(value))) => format!("[={}]", scalar(&value)),
        Ok(Some(PathElement::Index(index))) => format!("[{index}]"),
        Ok(None) | Err(_) => element.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_shown_as_go_prints_them() {
        for (element, shown) in [
            ("v:123456789.125", "[=1.23456789125e+08]"),
            ("v:1e-07", "[=1e-07]"),
            ("v:5", "[=5]"),
            ("v:null", "[=null]"),
            ("k:{\"a\":null,\"b\":{\"c\":null}}", "[a=null,b=c=null]"),
            ("k:{\"port\":1e21,\"s\":\"x\"}", "[port=1e+21,s=\"x\"]"),
        ] {
            assert_eq!(display(element), shown, "{element}");
        }
    }
}
