//! Unquotes texts.

/// The text in single or double quotes, with Go's escapes; `None` when an escape is invalid or a quote is not escaped.
pub(super) fn unquote(quoted: &str) -> Option<String> {
    let quote = quoted.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let inner = quoted.get(1..)?.strip_suffix(quote)?;
    let mut bytes = Vec::with_capacity(inner.len());
    let mut rest = inner.chars();
    while let Some(c) = rest.next() {
        match c {
            '\\' => escape(&mut rest, quote, &mut bytes)?,
            c if c == quote => return None,
            c => push(&mut bytes, c),
        }
    }
    // Bytes written as escapes need not be UTF-8; no value in an object equals such a text.
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn escape(rest: &mut std::str::Chars<'_>, quote: char, bytes: &mut Vec<u8>) -> Option<()> {
    match rest.next()? {
        'a' => bytes.push(7),
        'b' => bytes.push(8),
        'f' => bytes.push(12),
        'n' => bytes.push(b'\n'),
        'r' => bytes.push(b'\r'),
        't' => bytes.push(b'\t'),
        'v' => bytes.push(11),
        '\\' => bytes.push(b'\\'),
        c @ ('\'' | '"') if c == quote => push(bytes, c),
        'x' => bytes.push(u8::try_from(digits(rest, 2, 16, 0)?).ok()?),
        'u' => push(bytes, char::from_u32(digits(rest, 4, 16, 0)?)?),
        'U' => push(bytes, char::from_u32(digits(rest, 8, 16, 0)?)?),
        c @ '0'..='7' => bytes.push(u8::try_from(digits(rest, 2, 8, c.to_digit(8)?)?).ok()?),
        _ => return None,
    }
    Some(())
}

fn digits(rest: &mut std::str::Chars<'_>, count: usize, radix: u32, first: u32) -> Option<u32> {
    (0..count)
        .try_fold(first, |number, _| number.checked_mul(radix)?.checked_add(rest.next()?.to_digit(radix)?))
}

fn push(bytes: &mut Vec<u8>, c: char) {
    bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
}
