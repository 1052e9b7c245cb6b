//! Serializes with serde, with the escapes of Go's encoder.

use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter, Serializer};
use std::io::{self, Write};

/// Appends the JSON of a value, in one line and with Go's escapes: `<`, `>`, `&` and two line separators are escaped
/// too.
///
/// # Errors
/// When the value's serialization fails, or a map has keys that are not strings.
pub fn serialize_to(out: &mut Vec<u8>, value: &impl Serialize) -> serde_json::Result<()> {
    value.serialize(&mut Serializer::with_formatter(out, GoFormatter))
}

/// As [`CompactFormatter`], with the escapes that Go adds.
struct GoFormatter;

impl Formatter for GoFormatter {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        let mut rest = fragment;
        // The separators are U+2028 and U+2029.
        while let Some(at) = rest.find(['<', '>', '&', '\u{2028}', '\u{2029}']) {
            let (plain, tail) = rest.split_at(at);
            CompactFormatter.write_string_fragment(writer, plain)?;
            let mut chars = tail.chars();
            if let Some(escaped) = chars.next() {
                write!(writer, "\\u{:04x}", u32::from(escaped))?;
            }
            rest = chars.as_str();
        }
        CompactFormatter.write_string_fragment(writer, rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::json::write_string;

    #[test]
    fn strings_are_those_of_the_encoder() {
        for text in [
            "",
            "plain",
            "<b>&\"\\/\u{7f}",
            "\u{0}\u{8}\t\n\u{b}\u{c}\r\u{1f}",
            "a\u{2028}b\u{2029}",
            "é\u{20ac}€<",
        ] {
            let (mut serialized, mut written) = (Vec::new(), Vec::new());
            serialize_to(&mut serialized, &text).unwrap();
            write_string(&mut written, text);
            assert_eq!(
                String::from_utf8(serialized).unwrap(),
                String::from_utf8(written).unwrap(),
                "{text:?}"
            );
        }
    }
}
