//! Prepares JSON for an event: compact, escaped as by Go, and optionally without managed fields.

use bytes::Bytes;
use pintle_machinery::codec::json::{compact, raw_members, write_string};
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

/// Compacts JSON to one line with Go's escapes; `None` for invalid JSON.
pub(crate) fn checked(json: &[u8]) -> Option<Bytes> {
    serde_json::from_slice::<IgnoredAny>(json).ok()?;
    Some(compact(json).into())
}

/// Removes `metadata.managedFields` from the compact JSON of an object, a list or a table. Other JSON is returned
/// unchanged.
pub(crate) fn without_managed_fields(json: &Bytes) -> Bytes {
    let has_some = json.windows(FIELD.len()).any(|part| part == FIELD.as_bytes());
    if !has_some {
        return json.clone();
    }
    let mut out = Vec::with_capacity(json.len());
    match write_object(&mut out, json, Members::Top) {
        Some(()) => out.into(),
        None => json.clone(),
    }
}

const FIELD: &str = "managedFields";

/// The kind of object whose members are written.
#[derive(Clone, Copy)]
enum Members {
    /// An object that may be a list or a table.
    Top,
    /// An item of a list.
    Item,
    /// A row of a table.
    Row,
    /// Metadata.
    Metadata,
}

/// The recursion is as deep as the variants of [`Members`] allow.
fn write_object(out: &mut Vec<u8>, json: &[u8], members: Members) -> Option<()> {
    let Ok(fields) = raw_members(json) else {
        out.extend_from_slice(json);
        return Some(());
    };
    out.push(b'{');
    let mut is_first = true;
    for (key, value) in fields {
        let value = value.get().as_bytes();
        if matches!(members, Members::Metadata) && key == FIELD {
            continue;
        }
        if !is_first {
            out.push(b',');
        }
        is_first = false;
        write_string(out, &key);
        out.push(b':');
        match (members, key.as_ref()) {
            (Members::Top | Members::Item, "metadata") => write_object(out, value, Members::Metadata)?,
            (Members::Top, "items") => write_items(out, value, Members::Item)?,
            (Members::Top, "rows") => write_items(out, value, Members::Row)?,
            (Members::Row, "object") => write_object(out, value, Members::Item)?,
            _ => out.extend_from_slice(value),
        }
    }
    out.push(b'}');
    Some(())
}

fn write_items(out: &mut Vec<u8>, json: &[u8], members: Members) -> Option<()> {
    let Ok(items) = serde_json::from_slice::<Vec<&RawValue>>(json) else {
        out.extend_from_slice(json);
        return Some(());
    };
    out.push(b'[');
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_object(out, item.get().as_bytes(), members)?;
    }
    out.push(b']');
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_becomes_compact_as_go_writes_it() {
        let check = |json: &str, want: Option<&str>| {
            let got = checked(json.as_bytes());
            assert_eq!(got.as_deref(), want.map(str::as_bytes), "{json}");
        };
        check(
            "{ \"a\" : [ 1 , \" <b>&\\\" \" ],\n\"c\": null }\n",
            Some(r#"{"a":[1," \u003cb\u003e\u0026\" "],"c":null}"#),
        );
        check("\"\u{2028}\u{2029}\u{20ac}\"", Some("\"\\u2028\\u2029\u{20ac}\""));
        check("apiVersion: v1", None);
        check("{\"a\":", None);
        check("", None);
    }

    #[test]
    fn managed_fields_go_where_they_are_metadata() {
        let check = |json: &str, want: &str| {
            let got = without_managed_fields(&Bytes::copy_from_slice(json.as_bytes()));
            assert_eq!(std::str::from_utf8(&got).unwrap(), want);
        };
        check(
            r#"{"kind":"A","metadata":{"name":"a","managedFields":[{"x":1}],"uid":"u"},"data":{"managedFields":"1"}}"#,
            r#"{"kind":"A","metadata":{"name":"a","uid":"u"},"data":{"managedFields":"1"}}"#,
        );
        check(
            r#"{"kind":"L","metadata":{},"items":[{"metadata":{"managedFields":[]}},{"metadata":{"name":"b"}},1]}"#,
            r#"{"kind":"L","metadata":{},"items":[{"metadata":{}},{"metadata":{"name":"b"}},1]}"#,
        );
        check(
            r#"{"rows":[{"cells":[1],"object":{"metadata":{"managedFields":[],"name":"c"}}}]}"#,
            r#"{"rows":[{"cells":[1],"object":{"metadata":{"name":"c"}}}]}"#,
        );
        check(r#"["managedFields"]"#, r#"["managedFields"]"#);
    }
}
