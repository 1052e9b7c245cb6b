//! Sets of fields (`FieldsV1`) in trees.
//!
//! A tree has such a set as the text of its JSON. The sets are half of most objects, and few writes read them; a tree of
//! them would take most of the time and memory of decoding an object.

use super::any::{decode_any_body, decode_raw};
use super::parser::Parser;
use super::write::write_any;
use crate::Value;
use crate::codec::MAX_DEPTH;
use crate::codec::error::Fallible;
use crate::codec::weight::Weight;
use crate::managed_fields::write_fields_v1;
use std::borrow::Cow;

/// The value in a tree for the JSON of a set, as a document has it: compact, and with the escapes of Go's encoder.
pub(crate) fn fields_text(json: &[u8]) -> Value {
    // Replacing invalid bytes reads one character at a time.
    let json = std::str::from_utf8(json).map_or_else(|_| String::from_utf8_lossy(json), Cow::Borrowed);
    let is_usual = |byte: &u8| matches!(byte, b'!'..=b'~') && !matches!(byte, b'<' | b'>' | b'&');
    // The bytes of a chunk are compared together.
    let mut chunks = json.as_bytes().chunks(64);
    if chunks.all(|chunk| chunk.iter().fold(true, |all, byte| all & is_usual(byte))) {
        return Value::from(json);
    }
    let mut text = String::with_capacity(json.len());
    let (mut in_string, mut escaped) = (false, false);
    for character in json.chars() {
        match character {
            ' ' | '\n' | '\t' | '\r' if !in_string => continue,
            '"' if !escaped => in_string = !in_string,
            _ => {}
        }
        escaped = character == '\\' && !escaped;
        match character {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => text += &format!("\\u{:04x}", u32::from(character)),
            _ => text.push(character),
        }
    }
    Value::from(text)
}

/// As [`fields_text`], for bytes that may be anything. Other bytes than JSON become a text that is no set: the field
/// manager drops the entry, and the object is valid without it.
pub(crate) fn fields_of_bytes(bytes: &[u8], depth: usize) -> Value {
    let mut parser = Parser::new(bytes, Weight::UNLIMITED);
    let json = parser.skip_within(depth).and_then(|json| parser.end().map(|()| json));
    match json {
        Ok(b"null") => Value::Null,
        Ok(json) => fields_text(json),
        Err(_) => closed(&Value::from(String::from_utf8_lossy(bytes))),
    }
}

/// The value in a tree for a text in place of a set: that of another tree, which was written without its schema.
pub(super) fn fields_of_tree(text: Value) -> Value {
    match text.as_str() {
        Some(fields) if fields.starts_with('{') => fields_of_bytes(fields.as_bytes(), MAX_DEPTH),
        _ => closed(&text),
    }
}

/// The value in a tree for a set, or for any other value that a client sent in its place.
pub(crate) fn closed(fields: &Value) -> Value {
    let mut out = Vec::with_capacity(256);
    write_fields_v1(&mut out, fields);
    // The writer takes texts only.
    Value::from(String::from_utf8(out).unwrap_or_default())
}

/// Appends a set with its members sorted by their text.
pub(super) fn write_sorted_fields(out: &mut Vec<u8>, text: &str) {
    // Names of fields are sorted by their text in any case.
    let has_others = ["\"k:", "\"v:", "\"i:"].iter().any(|kind| text.contains(kind));
    match has_others.then(|| decode_raw(text.as_bytes())) {
        Some(Ok(fields)) => write_any(out, &fields),
        Some(Err(_)) | None => out.extend_from_slice(text.as_bytes()),
    }
}

/// The set of a value in a tree, as JSON has it. The text may be a client's: the memory of the result is bounded as for a
/// body of that size.
///
/// # Errors
/// When it would take more.
pub(crate) fn opened(fields: &Value) -> Fallible<Value> {
    match fields {
        Value::String(text) => decode_any_body(text.as_bytes()).map_err(Box::new),
        other => Ok(other.clone()),
    }
}

/// Gives the entries of `managedFields` in metadata the form that they have in JSON, where a tree is used without its
/// schema.
pub fn open_managed_fields(metadata: &mut Value) {
    let entries = metadata.get_mut("managedFields").and_then(Value::as_array_mut);
    for entry in entries.into_iter().flatten() {
        if let Some(fields) = entry.get_mut("fieldsV1")
            && let Ok(open) = opened(fields)
        {
            *fields = open;
        }
    }
}

/// The inverse of [`open_managed_fields`], for trees that were decoded without a schema.
pub fn close_managed_fields(metadata: &mut Value) {
    let entries = metadata.get_mut("managedFields").and_then(Value::as_array_mut);
    for entry in entries.into_iter().flatten() {
        if let Some(fields @ Value::Object(_)) = entry.get_mut("fieldsV1") {
            *fields = closed(fields);
        }
    }
}

/// Sorts the members of the sets in `managedFields` by their text, as in an object that is held as a map.
pub fn sort_managed_fields(metadata: &mut Value) {
    let entries = metadata.get_mut("managedFields").and_then(Value::as_array_mut);
    for entry in entries.into_iter().flatten() {
        let Some(fields) = entry.get_mut("fieldsV1") else { continue };
        let mut sorted = Vec::with_capacity(256);
        match &*fields {
            Value::String(text) => write_sorted_fields(&mut sorted, text),
            // A tree that was decoded without its schema.
            Value::Object(_) => write_any(&mut sorted, fields),
            _ => continue,
        }
        // The writers take texts only.
        *fields = Value::from(String::from_utf8(sorted).unwrap_or_default());
    }
}

/// Whether a set in the `managedFields` of metadata is nested deeper than `limit`.
pub fn managed_fields_exceed_depth(metadata: &Value, limit: usize) -> bool {
    let entries = metadata.get("managedFields").and_then(Value::as_array).into_iter().flatten();
    let mut texts = entries.filter_map(|entry| entry.get("fieldsV1")?.as_str());
    texts.any(|text| {
        // Each level has a brace, and counting them is cheaper than parsing.
        if text.bytes().filter(|byte| *byte == b'{').count() <= limit {
            return false;
        }
        let mut parser = Parser::new(text.as_bytes(), Weight::UNLIMITED);
        parser.skip_within(limit.saturating_sub(1)).is_err()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_tree::json;

    #[test]
    fn the_depth_of_sets_is_limited() {
        let set = |levels: usize| format!("{}{{}}{}", "{\"f:\":".repeat(levels - 1), "}".repeat(levels - 1));
        for (levels, limit) in [(1, 1), (3, 3), (3, 2), (100, 100), (100, 99), (100, 200)] {
            let metadata = json!({"managedFields": [{"fieldsV1": "{}"}, {"fieldsV1": set(levels)}]});
            assert_eq!(managed_fields_exceed_depth(&metadata, limit), levels > limit, "{levels} {limit}");
        }
    }

    #[test]
    fn a_map_has_sets_with_sorted_members() {
        let set = r#"{"f:p":{"k:{\"port\":9}":{},"k:{\"port\":80}":{}}}"#;
        let mut metadata = json!({"managedFields": [{"fieldsV1": set}, {"manager": "m"}]});
        sort_managed_fields(&mut metadata);
        let sorted = r#"{"f:p":{"k:{\"port\":80}":{},"k:{\"port\":9}":{}}}"#;
        let expected = json!({"managedFields": [{"fieldsV1": sorted}, {"manager": "m"}]});
        assert_eq!(metadata, expected);
        open_managed_fields(&mut metadata);
        assert!(metadata["managedFields"][0]["fieldsV1"].is_object());
        sort_managed_fields(&mut metadata);
        assert_eq!(metadata, expected);
    }

    #[test]
    fn a_tree_has_the_text_as_go_writes_it() {
        for (json, expected) in [
            ("{}", "{}"),
            (r#"{"f:a":{},"v:\"x\"":{}}"#, r#"{"f:a":{},"v:\"x\"":{}}"#),
            ("{ \"f:a b\" :\n{ } , \"f:\\\"\t\" : {} }", "{\"f:a b\":{},\"f:\\\"\t\":{}}"),
            ("{\"f:<>&\u{2028}é\":{}}", "{\"f:\\u003c\\u003e\\u0026\\u2028é\":{}}"),
            (r#""text""#, r#""text""#),
            ("[1, 2]", "[1,2]"),
        ] {
            assert_eq!(fields_text(json.as_bytes()), expected, "{json}");
        }
        assert_eq!(fields_of_bytes(b" {\"f:a\": {}} ", 8), r#"{"f:a":{}}"#);
        assert_eq!(fields_of_bytes(b"null", 8), Value::Null);
        for malformed in ["", "{", "{}{}", "a\"", "[[[[[[[[[1]]]]]]]]]"] {
            let text = fields_of_bytes(malformed.as_bytes(), 8);
            assert_eq!(opened(&text).unwrap(), malformed, "{text}");
        }
    }
}
