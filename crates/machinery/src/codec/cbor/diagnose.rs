//! Shows a data item in diagnostic notation
//! ([RFC 8949, section 8](https://www.rfc-editor.org/rfc/rfc8949.html#section-8)).

use std::fmt::Write as _;

use super::decode::Count;
use super::reader::{Head, Major, Reader};
use super::well_formed;
use crate::codec::error::Fallible;
use crate::codec::number::write_f64;

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
        Major::Bytes | Major::Text if head.is_indefinite() && reader.take_break() => {
            out.push_str(if head.major == Major::Text { "\"\"_" } else { "''_" });
        }
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
        (Ok(text), Major::Text) => quote(text, '"', out),
        (Ok(text), _) if !text.is_empty() => quote(text, '\'', out),
        (Ok(_) | Err(_), _) => {
            out.push_str("h'");
            bytes.iter().for_each(|byte| _ = write!(out, "{byte:02x}"));
            out.push('\'');
        }
    }
    Ok(())
}

/// Quotes a text in the way of JSON. All characters beyond ASCII are escaped.
fn quote(text: &str, quote: char, out: &mut String) {
    out.push(quote);
    for c in text.chars() {
        match c {
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\\' => out.push_str("\\\\"),
            c if c == quote => out.extend(['\\', c]),
            ' '..='~' => out.push(c),
            c => c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| _ = write!(out, "\\u{unit:04x}")),
        }
    }
    out.push(quote);
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
