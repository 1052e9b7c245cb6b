//! Decodes base64 as Go's `encoding/base64` does (<https://pkg.go.dev/encoding/base64>): line breaks are skipped, unused
//! trailing bits are ignored.

use ::base64::{Engine, engine::general_purpose::STANDARD};
use std::borrow::Cow;

/// Returns text in the standard alphabet in its canonical form: without line breaks, with zeros as trailing bits.
///
/// # Errors
/// Go's message, when the text is not base64.
pub fn canonical(text: &str) -> Result<Cow<'_, str>, String> {
    let bytes = text.as_bytes();
    if is_canonical(bytes) {
        return Ok(Cow::Borrowed(text));
    }
    decode(text).map(|bytes| Cow::Owned(encode(&bytes)))
}

/// Encodes bytes in the standard alphabet with padding.
pub fn encode(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Decodes text in the standard alphabet with padding, as Go's `StdEncoding`.
///
/// # Errors
/// Go's message, when the text is not base64.
pub fn decode(text: &str) -> Result<Vec<u8>, String> {
    decode_with(text, digit, true)
}

/// Decodes text in the alphabet for URLs and file names with padding, as Go's `URLEncoding`.
///
/// # Errors
/// Go's message, when the text is not base64.
pub fn decode_url(text: &str) -> Result<Vec<u8>, String> {
    decode_with(text, url_digit, true)
}

/// Decodes text in the alphabet for URLs and file names without padding, as Go's `RawURLEncoding`.
///
/// # Errors
/// Go's message, when the text is not base64.
pub fn decode_raw_url(text: &str) -> Result<Vec<u8>, String> {
    decode_with(text, url_digit, false)
}

fn url_digit(byte: u8) -> Option<u8> {
    match byte {
        b'-' => Some(62),
        b'_' => Some(63),
        b'+' | b'/' => None,
        byte => digit(byte),
    }
}

fn decode_with(text: &str, digit: impl Fn(u8) -> Option<u8>, padded: bool) -> Result<Vec<u8>, String> {
    let mut out = Vec::with_capacity(text.len().div_ceil(4) * 3);
    let mut bytes = text.bytes().enumerate().filter(|(_, byte)| !matches!(byte, b'\r' | b'\n'));
    let corrupt = |offset: usize| format!("illegal base64 data at input byte {offset}");
    loop {
        let mut group = 0u32;
        let mut count = 0;
        while count < 4 {
            match bytes.next() {
                None if count == 0 => return Ok(out),
                // Go reports a missing end at the start of the last group.
                None if padded || count == 1 => return Err(corrupt(text.len().saturating_sub(count))),
                None => {
                    push_last(&mut out, group, count);
                    return Ok(out);
                }
                Some((offset, b'=')) if padded => {
                    if count < 2 {
                        return Err(corrupt(offset));
                    }
                    if count == 2 {
                        match bytes.next() {
                            Some((_, b'=')) => {}
                            Some((offset, _)) => return Err(corrupt(offset - 1)),
                            None => return Err(corrupt(text.len())),
                        }
                    }
                    if let Some((offset, _)) = bytes.next() {
                        return Err(corrupt(offset));
                    }
                    push_last(&mut out, group, count);
                    return Ok(out);
                }
                Some((offset, byte)) => {
                    let digit = digit(byte).ok_or_else(|| corrupt(offset))?;
                    group = group << 6 | u32::from(digit);
                    count += 1;
                }
            }
        }
        let [_, a, b, c] = group.to_be_bytes();
        out.extend([a, b, c]);
    }
}

/// Appends the one or two bytes of the last two or three digits.
fn push_last(out: &mut Vec<u8>, group: u32, count: usize) {
    let [_, a, b, _] = (group << (6 * (4 - count))).to_be_bytes();
    out.push(a);
    if count == 3 {
        out.push(b);
    }
}

fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}

fn is_canonical(bytes: &[u8]) -> bool {
    if !bytes.len().is_multiple_of(4) {
        return false;
    }
    let (digits, spare) = match bytes {
        [head @ .., b'=', b'='] => (head, 0b1111),
        [head @ .., b'='] => (head, 0b11),
        _ => (bytes, 0),
    };
    let last = digits.last().copied().and_then(digit).unwrap_or(0);
    last & spare == 0 && digits.iter().all(|&byte| digit(byte).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_read_as_go_reads_it() {
        for (text, expected) in [
            ("", Ok("")),
            ("Aw==", Ok("Aw==")),
            ("Ax==", Ok("Aw==")),
            ("aGVs\nbG8=", Ok("aGVsbG8=")),
            ("aGVsbG8=\r\n", Ok("aGVsbG8=")),
            ("not base64!", Err("illegal base64 data at input byte 3")),
            ("a", Err("illegal base64 data at input byte 0")),
            ("aGVsbG8", Err("illegal base64 data at input byte 4")),
            ("=", Err("illegal base64 data at input byte 0")),
            ("aGVsbG8=x", Err("illegal base64 data at input byte 8")),
            ("Aw=", Err("illegal base64 data at input byte 3")),
            ("Aw=x", Err("illegal base64 data at input byte 2")),
        ] {
            assert_eq!(
                canonical(text).as_deref(),
                expected.map_err(str::to_owned).as_ref().copied(),
                "{text}"
            );
        }
    }

    #[test]
    fn base64_without_padding_is_read_as_go_reads_it() {
        for (text, expected) in [
            ("", Ok(&b""[..])),
            ("-_8", Ok(b"\xfb\xff")),
            ("-_9", Ok(b"\xfb\xff")),
            ("aGVs\r\nbG8", Ok(b"hello")),
            ("aGVsbG8=", Err("illegal base64 data at input byte 7")),
            ("a+", Err("illegal base64 data at input byte 1")),
            ("aGVsb", Err("illegal base64 data at input byte 4")),
        ] {
            assert_eq!(
                decode_raw_url(text).as_deref(),
                expected.map_err(str::to_owned).as_ref().copied(),
                "{text}"
            );
        }
    }
}
