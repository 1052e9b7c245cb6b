//! Unescapes string literals.

/// The content of a literal: for strings, the bytes are UTF-8.
///
/// `text` is a token of the lexer without the `b` prefix: its quotes match. Escapes are checked again, since some are
/// not valid characters.
pub(super) fn unescape(text: &str, is_bytes: bool) -> Result<Vec<u8>, &'static str> {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let unraw = text.strip_prefix(['r', 'R']);
    let quoted = unraw.unwrap_or(&text);
    let quotes =
        if quoted.len() >= 6 && (quoted.starts_with("'''") || quoted.starts_with("\"\"\"")) { 3 } else { 1 };
    let content =
        quoted.get(quotes..quoted.len().saturating_sub(quotes)).ok_or("unable to unescape string")?;
    if unraw.is_some() || !content.contains('\\') {
        return Ok(content.as_bytes().to_vec());
    }
    let mut out = Vec::with_capacity(content.len());
    let mut rest = content.chars();
    while let Some(character) = rest.next() {
        if character != '\\' {
            push(&mut out, character);
            continue;
        }
        let escaped = rest.next().ok_or("unable to unescape string, found '\\' as last character")?;
        match escaped {
            'a' => out.push(7),
            'b' => out.push(8),
            'f' => out.push(12),
            'n' => out.push(b'\n'),
            'r' => out.push(b'\r'),
            't' => out.push(b'\t'),
            'v' => out.push(11),
            '\\' | '\'' | '"' | '`' | '?' => push(&mut out, escaped),
            'x' | 'X' => code(&mut out, digits(&mut rest, 2, 16)?, is_bytes)?,
            'u' | 'U' if is_bytes => return Err("unable to unescape string"),
            'u' => code(&mut out, digits(&mut rest, 4, 16)?, false)?,
            'U' => code(&mut out, digits(&mut rest, 8, 16)?, false)?,
            '0'..='3' => {
                let first = escaped.to_digit(8).unwrap_or(0);
                let others =
                    digits(&mut rest, 2, 8).map_err(|_| "unable to unescape octal sequence in string")?;
                code(&mut out, first * 64 + others, is_bytes)?;
            }
            _ => return Err("unable to unescape string"),
        }
    }
    Ok(out)
}

fn push(out: &mut Vec<u8>, character: char) {
    out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
}

fn digits(rest: &mut std::str::Chars<'_>, count: usize, radix: u32) -> Result<u32, &'static str> {
    let mut value = 0u32;
    for _ in 0..count {
        let digit =
            rest.next().and_then(|character| character.to_digit(radix)).ok_or("unable to unescape string")?;
        value = value.wrapping_mul(radix).wrapping_add(digit);
    }
    Ok(value)
}

/// Appends a number: a byte in bytes, and a character in strings.
fn code(out: &mut Vec<u8>, value: u32, is_byte: bool) -> Result<(), &'static str> {
    match u8::try_from(value) {
        Ok(byte) if is_byte => out.push(byte),
        _ => push(out, char::from_u32(value).ok_or("invalid unicode code point")?),
    }
    Ok(())
}
