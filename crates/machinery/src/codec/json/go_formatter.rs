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
        // Almost no text has such a byte, and all of a text is compared faster than a part of it.
        if !fragment.bytes().fold(false, |found, byte| found | may_begin_escaped(byte)) {
            return CompactFormatter.write_string_fragment(writer, fragment);
        }
        let (mut rest, mut passed) = (fragment, 0);
        while let Some(at) = rest.bytes().skip(passed).position(may_begin_escaped) {
            let (plain, tail) = rest.split_at(passed + at);
            let mut chars = tail.chars();
            let Some(char) = chars.next() else { break };
            if is_escaped(char) {
                CompactFormatter.write_string_fragment(writer, plain)?;
                write!(writer, "\\u{:04x}", u32::from(char))?;
                (rest, passed) = (chars.as_str(), 0);
            } else {
                passed += at + char.len_utf8();
            }
        }
        CompactFormatter.write_string_fragment(writer, rest)
    }
}

/// Whether a byte is the first one of a character that is escaped, or of another one.
fn may_begin_escaped(byte: u8) -> bool {
    matches!(byte, b'<' | b'>' | b'&' | 0xe2)
}

/// Whether Go escapes a character that serde does not.
fn is_escaped(char: char) -> bool {
    // The separators of lines and paragraphs.
    matches!(char, '<' | '>' | '&' | '\u{2028}' | '\u{2029}')
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
            "\u{2027}\u{2028}\u{202a}>\u{2029}€",
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
