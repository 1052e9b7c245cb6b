//! Shows a data item in diagnostic notation
//! ([RFC 8949, section 8](https://www.rfc-editor.org/rfc/rfc8949.html#section-8)).

use std::fmt::Write as _;

use super::decode::Count;
use super::reader::{Head, Major, Reader};
use super::well_formed;
use crate::codec::error::Fallible;
use crate::codec::number::write_f64;
use pintle_go_forms::quote;

/// The diagnostic notation of a body, with texts for byte strings; hexadecimal digits for bytes that are not CBOR.
pub fn diagnose(bytes: &[u8]) -> String {
    let mut out = String::new();
    let written = well_formed::check(bytes).and_then(|()| item(&mut Reader::new(bytes), &mut out));
    match written {
        Ok(()) => out,
        Err(_) => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
    }
}

fn item(reader: &mut Reader<'_>, out: &mut String) -> Fallible<()> {
    let head = reader.head()?;
    match head.major {
        Major::Positive => _ = write!(out, "{}", head.value),
        Major::Negative => _ = write!(out, "-{}", u128::from(head.value) + 1),
        Major::Bytes | Major::Text if head.is_indefinite() => {
            out.push_str("(_ ");
            let mut is_first = true;
            while !reader.take_break() {
                if !std::mem::take(&mut is_first) {
                    out.push_str(", ");
                }
                item(reader, out)?;
            }
            out.push(')');
        }
        Major::Bytes | Major::Text => string(reader, head, out)?,
        Major::Array | Major::Map => {
            let is_map = head.major == Major::Map;
            out.push(if is_map { '{' } else { '[' });
            if head.is_indefinite() {
                out.push_str("_ ");
            }
            let mut count = Count::of(head);
            while let Some(index) = count.next(reader) {
                if index > 0 {
                    out.push_str(", ");
                }
                item(reader, out)?;
                if is_map {
                    out.push_str(": ");
                    item(reader, out)?;
                }
            }
            out.push(if is_map { '}' } else { ']' });
        }
        Major::Tag => {
            _ = write!(out, "{}(", head.value);
            item(reader, out)?;
            out.push(')');
        }
        Major::Primitive => primitive(head, out),
    }
    Ok(())
}

fn string(reader: &mut Reader<'_>, head: Head, out: &mut String) -> Fallible<()> {
    let bytes = reader.string(head, &mut Vec::new())?.unwrap_or_default();
    match (std::str::from_utf8(bytes), head.major) {
        (Ok(text), Major::Text) => out.push_str(&quote(text)),
        (Ok(text), _) => {
            let quoted = quote(text);
            let inner = quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default();
            out.push('\'');
            out.push_str(&inner.replace("\\\"", "\"").replace('\'', "\\'"));
            out.push('\'');
        }
        (Err(_), _) => {
            out.push_str("h'");
            bytes.iter().for_each(|byte| _ = write!(out, "{byte:02x}"));
            out.push('\'');
        }
    }
    Ok(())
}

fn primitive(head: Head, out: &mut String) {
    match (head.info, head.float()) {
        (20, _) => out.push_str("false"),
        (21, _) => out.push_str("true"),
        (22, _) => out.push_str("null"),
        (23, _) => out.push_str("undefined"),
        (_, Some(float)) => {
            let mut text = Vec::new();
            write_f64(&mut text, float);
            let text = String::from_utf8_lossy(&text);
            out.push_str(&text);
            if !text.contains(['.', 'e']) {
                out.push_str(".0");
            }
        }
        (_, None) => _ = write!(out, "simple({})", head.value),
    }
}
