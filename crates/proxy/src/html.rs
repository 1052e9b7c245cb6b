//! Splits HTML into tags and all else, as far as links need it: the tokens of Go's `html.Tokenizer`. Each byte is read
//! a bounded number of times.

use memchr::{memchr, memmem};

/// A piece of a page.
pub(crate) enum Token<'a> {
    /// A start tag.
    Tag(Tag),
    /// Text, an end tag, a comment: as it is in the page.
    Other(&'a [u8]),
}

/// A start tag.
pub(crate) struct Tag {
    /// In lower case.
    pub(crate) name: Vec<u8>,
    /// Names in lower case, and values with the common character references decoded.
    pub(crate) attributes: Vec<(Vec<u8>, Vec<u8>)>,
    /// Whether it ends with `/>`.
    pub(crate) is_closed: bool,
}

/// The tokens of a page. A tag that does not end before the page does is left out.
pub(crate) fn tokens(page: &[u8]) -> impl Iterator<Item = Token<'_>> {
    Tokens { rest: page, raw: None }
}

struct Tokens<'a> {
    rest: &'a [u8],
    /// The element whose contents are text until its end tag.
    raw: Option<Vec<u8>>,
}

/// Elements whose contents are text.
const RAW: [&[u8]; 9] =
    [b"iframe", b"noembed", b"noframes", b"plaintext", b"script", b"style", b"textarea", b"title", b"xmp"];

impl<'a> Tokens<'a> {
    fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.rest.split_at(count.min(self.rest.len()));
        self.rest = rest;
        taken
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        if self.rest.is_empty() {
            return None;
        }
        if let Some(raw) = self.raw.take() {
            let length = raw_length(self.rest, &raw);
            if length > 0 {
                return Some(Token::Other(self.take(length)));
            }
        }
        let length = text_length(self.rest);
        if length > 0 {
            return Some(Token::Other(self.take(length)));
        }
        match self.rest {
            [b'<', b'!', b'-', b'-', comment @ ..] => {
                let end = memmem::find(comment, b"-->").map_or(usize::MAX, |end| end + 7);
                Some(Token::Other(self.take(end)))
            }
            [b'<', letter, ..] if letter.is_ascii_alphabetic() => {
                let (tag, length) = tag(self.rest)?;
                self.take(length);
                self.raw = RAW.contains(&tag.name.as_slice()).then(|| tag.name.clone());
                Some(Token::Tag(tag))
            }
            rest => {
                let end = memchr(b'>', rest).map_or(usize::MAX, |end| end + 1);
                Some(Token::Other(self.take(end)))
            }
        }
    }
}

/// The number of bytes before the next markup.
fn text_length(page: &[u8]) -> usize {
    let mut start = 0;
    while let Some(found) = memchr(b'<', page.get(start..).unwrap_or_default()) {
        let at = start + found;
        match page.get(at + 1) {
            Some(b'!' | b'/' | b'?') => return at,
            Some(letter) if letter.is_ascii_alphabetic() => return at,
            _ => start = at + 1,
        }
    }
    page.len()
}

/// The number of bytes before the end tag of a raw element.
fn raw_length(page: &[u8], name: &[u8]) -> usize {
    if name == b"plaintext" {
        return page.len();
    }
    let mut start = 0;
    while let Some(found) = memmem::find(page.get(start..).unwrap_or_default(), b"</") {
        let at = start + found;
        let after = page.get(at + 2..).unwrap_or_default();
        let is_end = after.get(..name.len()).is_some_and(|word| word.eq_ignore_ascii_case(name))
            && matches!(after.get(name.len()), Some(b' ' | b'\n' | b'\r' | b'\t' | 0x0c | b'/' | b'>'));
        if is_end {
            return at;
        }
        start = at + 2;
    }
    page.len()
}

/// A start tag and its length; `None` when the page ends before it.
fn tag(page: &[u8]) -> Option<(Tag, usize)> {
    let mut reader = Reader { page, at: 1 };
    let name = reader.until(|byte| is_space(byte) || matches!(byte, b'/' | b'>'))?.to_ascii_lowercase();
    let mut attributes = Vec::new();
    loop {
        reader.skip_spaces();
        match reader.peek()? {
            b'>' => break,
            b'/' => {
                reader.at += 1;
                continue;
            }
            _ => {}
        }
        // An attribute may begin with an equals sign.
        let start = reader.at;
        reader.at += 1;
        reader.until(|byte| is_space(byte) || matches!(byte, b'/' | b'>' | b'='))?;
        let key = page.get(start..reader.at)?.to_ascii_lowercase();
        reader.skip_spaces();
        let value = match reader.peek()? {
            b'=' => {
                reader.at += 1;
                reader.skip_spaces();
                match reader.peek()? {
                    b'>' => &[],
                    quote @ (b'"' | b'\'') => {
                        reader.at += 1;
                        let value = reader.until(|byte| byte == quote)?;
                        reader.at += 1;
                        value
                    }
                    _ => reader.until(|byte| is_space(byte) || byte == b'>')?,
                }
            }
            _ => &[],
        };
        attributes.push((key, decode(value)));
    }
    let is_closed = page.get(reader.at - 1) == Some(&b'/');
    Some((Tag { name, attributes, is_closed }, reader.at + 1))
}

struct Reader<'a> {
    page: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<u8> {
        self.page.get(self.at).copied()
    }

    /// The bytes before the first one that ends them.
    fn until(&mut self, ends: impl Fn(u8) -> bool) -> Option<&'a [u8]> {
        let rest = self.page.get(self.at..)?;
        let length = rest.iter().position(|byte| ends(*byte))?;
        self.at += length;
        rest.get(..length)
    }

    fn skip_spaces(&mut self) {
        while self.peek().is_some_and(is_space) {
            self.at += 1;
        }
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t' | 0x0c)
}

/// Decodes numeric character references and those of the characters that markup needs. Others stay as they are, and
/// mean the same only in attributes that are no links.
fn decode(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = memchr(b'&', rest) {
        let (before, reference) = rest.split_at(at);
        out.extend_from_slice(before);
        match decode_reference(reference) {
            Some((character, length)) => {
                out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                rest = reference.get(length..).unwrap_or_default();
            }
            None => {
                out.push(b'&');
                rest = reference.get(1..).unwrap_or_default();
            }
        }
    }
    out.extend_from_slice(rest);
    out
}

/// The character of a reference, and the reference's length.
fn decode_reference(text: &[u8]) -> Option<(char, usize)> {
    let end = text.iter().take(12).position(|byte| *byte == b';')?;
    let name = std::str::from_utf8(text.get(1..end)?).ok()?;
    let character = match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => '\u{a0}',
        _ => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hexadecimal) => u32::from_str_radix(hexadecimal, 16),
                None => number.parse(),
            };
            char::from_u32(code.ok()?).filter(|character| *character != '\0')?
        }
    };
    Some((character, end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn character_references_are_decoded() {
        let check = |text: &str, expected: &str| {
            assert_eq!(String::from_utf8_lossy(&decode(text.as_bytes())), expected);
        };
        check("a&amp;b&lt;&#62;&#x22;&apos;", "a&b<>\"'");
        check("a&b=1&eacute;&#0;&", "a&b=1&eacute;&#0;&");
    }

    #[test]
    fn a_page_of_openings_is_read_in_linear_time() {
        for piece in ["<", "<a", "<!--", "</", "<a b=", "<script>", "<a b='"] {
            let page = piece.repeat((1 << 20) / piece.len());
            assert!(tokens(page.as_bytes()).count() <= page.len());
        }
    }
}
