//! Quotes texts as Go's `strconv` and `fmt` do (<https://pkg.go.dev/strconv#Quote>).

use regex::Regex;
use std::{fmt::Write as _, sync::LazyLock};

/// Whether Go considers the character printable (`unicode.IsPrint`): letters, marks, numbers, punctuation, symbols and
/// the ASCII space.
pub fn is_print(c: char) -> bool {
    static PRINTABLE: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"^[\p{L}\p{M}\p{N}\p{P}\p{S}]").ok());
    match c {
        ' '..='~' => true,
        c if c.is_ascii() => false,
        c => PRINTABLE.as_ref().is_some_and(|pattern| pattern.is_match(c.encode_utf8(&mut [0; 4]))),
    }
}

/// Formats a character as Go's `%#U`: its code point and, when printable, itself.
pub fn unicode_name(c: char) -> String {
    match is_print(c) {
        true => format!("U+{:04X} '{c}'", u32::from(c)),
        false => format!("U+{:04X}", u32::from(c)),
    }
}

/// Quotes a text as Go's `%q`.
pub fn quote(text: &str) -> String {
    quoted(text.len(), |out| text.chars().for_each(|c| push(out, c, '"')))
}

/// Quotes bytes as Go's `%q`: bytes that are not part of a UTF-8 character are written in hexadecimal.
pub fn quote_bytes(bytes: &[u8]) -> String {
    quoted(bytes.len(), |out| {
        for chunk in bytes.utf8_chunks() {
            chunk.valid().chars().for_each(|c| push(out, c, '"'));
            chunk.invalid().iter().for_each(|byte| push_hexadecimal(out, *byte));
        }
    })
}

/// Quotes a byte in single quotes, as a character of Latin-1, as Go's JSON decoder does.
pub fn quote_byte(byte: u8) -> String {
    let mut out = String::from("'");
    push(&mut out, char::from(byte), '\'');
    out.push('\'');
    out
}

/// Quotes a text as Go's package `time` does: bytes beyond ASCII and control characters are written in hexadecimal.
pub fn quote_ascii(text: &str) -> String {
    quoted(text.len(), |out| {
        for byte in text.bytes() {
            match byte {
                b'"' | b'\\' => out.extend(['\\', char::from(byte)]),
                b' '..=0x7f => out.push(char::from(byte)),
                _ => push_hexadecimal(out, byte),
            }
        }
    })
}

fn quoted(len: usize, write: impl FnOnce(&mut String)) -> String {
    let mut out = String::with_capacity(len + 2);
    out.push('"');
    write(&mut out);
    out.push('"');
    out
}

fn push(out: &mut String, c: char, quote: char) {
    // Writing to a string cannot fail.
    let _ = match c {
        '\\' => out.write_str("\\\\"),
        '\n' => out.write_str("\\n"),
        '\r' => out.write_str("\\r"),
        '\t' => out.write_str("\\t"),
        '\u{7}' => out.write_str("\\a"),
        '\u{8}' => out.write_str("\\b"),
        '\u{b}' => out.write_str("\\v"),
        '\u{c}' => out.write_str("\\f"),
        c if c == quote => write!(out, "\\{quote}"),
        c if is_print(c) => out.write_char(c),
        c => match u32::from(c) {
            code @ (0..0x20 | 0x7f) => write!(out, "\\x{code:02x}"),
            code @ 0..0x10000 => write!(out, "\\u{code:04x}"),
            code => write!(out, "\\U{code:08x}"),
        },
    };
}

fn push_hexadecimal(out: &mut String, byte: u8) {
    // Writing to a string cannot fail.
    let _ = write!(out, "\\x{byte:02x}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_quoted_as_in_go() {
        let rows = [
            ("a\"b\\c'd", r#""a\"b\\c'd""#),
            ("\n\t\u{1}\u{7f}\u{7}", r#""\n\t\x01\x7f\a""#),
            ("é✓\u{a0}\u{200b}\u{feff}", r#""é✓\u00a0\u200b\ufeff""#),
            ("\u{e0001}😀", r#""\U000e0001😀""#),
        ];
        for (text, quoted) in rows {
            assert_eq!(quote(text), quoted);
            assert_eq!(quote_bytes(text.as_bytes()), quoted);
        }
        assert_eq!(quote_bytes(b"a\xc3\xff\"\xc3\xa9"), r#""a\xc3\xff\"é""#);
    }

    #[test]
    fn times_are_quoted_in_ascii() {
        assert_eq!(quote_ascii("a\"\\\né\u{7f}"), "\"a\\\"\\\\\\x0a\\xc3\\xa9\u{7f}\"");
    }

    #[test]
    fn bytes_are_quoted_as_characters() {
        for (byte, quoted) in [
            (b'a', "'a'"),
            (b'\'', r"'\''"),
            (b'"', "'\"'"),
            (b'\\', r"'\\'"),
            (b'\n', r"'\n'"),
            (0, r"'\x00'"),
            (0x85, r"'\u0085'"),
            (0xad, r"'\u00ad'"),
            (0xc3, "'Ã'"),
        ] {
            assert_eq!(quote_byte(byte), quoted);
        }
    }

    #[test]
    fn characters_have_names() {
        assert_eq!(unicode_name('\u{7}'), "U+0007");
        assert_eq!(unicode_name('é'), "U+00E9 'é'");
    }
}
