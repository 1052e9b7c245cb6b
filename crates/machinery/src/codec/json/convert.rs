//! Converts between the canonical tree and a tree of the JSON that a client sees.

use pintle_schema::SchemaRef;
use pintle_tree::Value;

use super::any::decode_raw;
use super::decode::decode;
use super::encode::encode;
use super::write::encode_any;
use crate::codec::error::{DecodeError, Decoded};

/// Returns the object as its JSON has it, with every field that Go's encoder always writes. JSON and merge patches,
/// table rows and webhooks use this form: a patch may add to `spec.template.metadata` although the canonical tree lacks
/// it.
pub fn to_value(tree: &Value, schema: SchemaRef<'_>) -> Value {
    // Only a tree deeper than any decoded tree fails to decode again.
    decode_raw(&encode(tree, schema)).unwrap_or_else(|_| tree.clone())
}

/// Returns the canonical tree of an object in its JSON form. Problems are reported sorted by key.
///
/// # Errors
/// As [`decode`].
pub fn from_value(value: &Value, schema: SchemaRef<'_>) -> Result<Decoded, DecodeError> {
    decode(&encode_any(value), schema)
}

/// Formats JSON on several lines, as Go's `MarshalIndent` does with two spaces. Expects the compact output of this
/// crate's encoder.
pub fn pretty(json: &[u8]) -> Vec<u8> {
    indented(json, 2)
}

/// As [`pretty`], with so many spaces for each level.
pub fn indented(json: &[u8], spaces: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(json.len() * 2);
    let mut depth = 0usize;
    let mut in_string = false;
    let mut escaped = false;
    let mut opened = false;
    let line = |out: &mut Vec<u8>, depth: usize| {
        out.push(b'\n');
        out.extend(std::iter::repeat_n(b' ', spaces * depth));
    };
    for &byte in json {
        if in_string {
            out.push(byte);
            in_string = byte != b'"' || escaped;
            escaped = byte == b'\\' && !escaped;
            continue;
        }
        if byte.is_ascii_whitespace() {
            continue;
        }
        if matches!(byte, b'}' | b']') {
            depth = depth.saturating_sub(1);
            if !std::mem::take(&mut opened) {
                line(&mut out, depth);
            }
            out.push(byte);
            continue;
        }
        if std::mem::take(&mut opened) {
            line(&mut out, depth);
        }
        out.push(byte);
        match byte {
            b'{' | b'[' => {
                depth += 1;
                opened = true;
            }
            b',' => line(&mut out, depth),
            b':' => out.push(b' '),
            b'"' => in_string = true,
            _ => {}
        }
    }
    out
}
