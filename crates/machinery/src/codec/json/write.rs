//! Writes JSON without a schema, as Go does.

use super::plain::unescaped_length;
use crate::codec::number::write_number;
use pintle_tree::{Number, Value};

/// Encodes a value without a schema, keys sorted.
pub fn encode_any(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    write_any(&mut out, value);
    out
}

/// As [`encode_any`], but floats that are whole have a fraction, so that they are floats when they are decoded.
pub fn encode_exact(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    write_with(&mut out, value, |out, number| {
        let start = out.len();
        write_number(out, number);
        let is_whole = || out.get(start..).is_some_and(|text| !text.contains(&b'.') && !text.contains(&b'e'));
        if number.is_f64() && is_whole() {
            out.extend_from_slice(b".0");
        }
    });
    out
}

/// Appends the JSON of a value without a schema, keys sorted.
pub(super) fn write_any(out: &mut Vec<u8>, value: &Value) {
    write_with(out, value, write_number);
}

fn write_with(out: &mut Vec<u8>, value: &Value, write_number: fn(&mut Vec<u8>, &Number)) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Number(number) => write_number(out, number),
        Value::String(text) => write_string(out, text),
        Value::Array(items) => {
            out.push(b'[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write_with(out, item, write_number);
            }
            out.push(b']');
        }
        Value::Object(object) => {
            out.push(b'{');
            for (index, (key, value)) in object.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write_string(out, key);
                out.push(b':');
                write_with(out, value, write_number);
            }
            out.push(b'}');
        }
    }
}

/// Appends a string in quotes, with Go's escapes: `<`, `>`, `&` and two line separators are escaped too, so that the
/// text is safe in HTML.
pub fn write_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    write_escaped(out, text);
    out.push(b'"');
}

/// Appends what [`write_string`] writes between the quotes.
pub(crate) fn write_escaped(out: &mut Vec<u8>, text: &str) {
    let text = text.as_bytes();
    if unescaped_length(text) == text.len() {
        out.extend_from_slice(text);
    } else {
        write_escapes(out, text);
    }
}

/// Appends a text that needs escapes. It is not inlined, so that [`write_escaped`] stays small for texts without any.
#[cold]
fn write_escapes(out: &mut Vec<u8>, text: &[u8]) {
    let mut rest = text;
    loop {
        let (head, tail) = rest.split_at_checked(unescaped_length(rest)).unwrap_or((rest, &[]));
        out.extend_from_slice(head);
        let Some((&byte, after)) = tail.split_first() else { break };
        rest = after;
        let escape: &[u8] = match byte {
            b'"' => b"\\\"",
            b'\\' => b"\\\\",
            b'\n' => b"\\n",
            b'\r' => b"\\r",
            b'\t' => b"\\t",
            0x08 => b"\\b",
            0x0c => b"\\f",
            // The line and the paragraph separator, U+2028 and U+2029.
            0xe2 => match after {
                [0x80, 0xa8, after @ ..] => {
                    rest = after;
                    b"\\u2028"
                }
                [0x80, 0xa9, after @ ..] => {
                    rest = after;
                    b"\\u2029"
                }
                _ => &[0xe2],
            },
            _ => {
                out.extend_from_slice(format!("\\u00{byte:02x}").as_bytes());
                continue;
            }
        };
        out.extend_from_slice(escape);
    }
}
