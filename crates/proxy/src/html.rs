//! Splits HTML into tags and all else, as far as links need it: the tokens of Go's `html.Tokenizer`. Each byte is read
//! a bounded number of times.

use memchr::{memchr, memmem};
use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    sync::LazyLock,
};

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
    /// Names in lower case, and values with their character references decoded.
    pub(crate) attributes: Vec<(Vec<u8>, Vec<u8>)>,
    /// Whether it ends with `/>`.
    pub(crate) is_closed: bool,
}

/// The tokens of a page. A tag that does not end before the page does is left out.
pub(crate) fn tokens(page: &[u8]) -> impl Iterator<Item = Token<'_>> {
    Tokens { rest: page, raw: None }
}

/// Among how many attributes of a tag repeated ones are looked for; behind them all count, in bounded memory.
const MAX_KEYS: usize = 1000;

struct Tokens<'a> {
    rest: &'a [u8],
    /// The element whose contents are text until its end tag.
    raw: Option<Vec<u8>>,
}

/// Elements whose contents are text.
const RAW: [&[u8]; 10] = [
    b"iframe",
    b"noembed",
    b"noframes",
    b"noscript",
    b"plaintext",
    b"script",
    b"style",
    b"textarea",
    b"title",
    b"xmp",
];

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
                let length = 4 + comment_length(comment);
                Some(Token::Other(self.take(length)))
            }
            [b'<', b'/', letter, ..] if letter.is_ascii_alphabetic() => {
                let (_, length) = tag(self.rest, 2)?;
                Some(Token::Other(self.take(length)))
            }
            [b'<', letter, ..] if letter.is_ascii_alphabetic() => {
                let (tag, length) = tag(self.rest, 1)?;
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
    if name == b"script" {
        return script_length(page);
    }
    let mut start = 0;
    while let Some(found) = memmem::find(page.get(start..).unwrap_or_default(), b"</") {
        let at = start + found;
        if names(page.get(at + 2..).unwrap_or_default(), name) {
            return at;
        }
        start = at + 2;
    }
    page.len()
}

/// Whether a text begins with the name of a tag, in any case, and the name ends there.
fn names(text: &[u8], name: &[u8]) -> bool {
    text.get(..name.len()).is_some_and(|word| word.eq_ignore_ascii_case(name))
        && text.get(name.len()).is_some_and(|byte| is_space(*byte) || matches!(byte, b'/' | b'>'))
}

/// The number of bytes before the end tag of a script. The end tag of a script within a comment of a script
/// does not end it (<https://html.spec.whatwg.org/multipage/parsing.html#script-data-state>).
fn script_length(page: &[u8]) -> usize {
    #[derive(Clone, Copy)]
    enum State {
        Script,
        Comment,
        ScriptInComment,
    }
    let mut state = State::Script;
    let mut at = 0;
    // How many dashes are right before, in a comment.
    let mut dashes = 0;
    while let Some(rest) = page.get(at..).filter(|rest| !rest.is_empty()) {
        let closes = rest.strip_prefix(b"</").is_some_and(|rest| names(rest, b"script"));
        match (state, rest) {
            (State::Script | State::Comment, _) if closes => return at,
            (State::Script, [b'<', b'!', b'-', b'-', ..]) => {
                (state, dashes) = (State::Comment, 2);
                at += 4;
                continue;
            }
            (State::Script, _) => {}
            (_, [b'>', ..]) if dashes >= 2 => state = State::Script,
            (State::ScriptInComment, _) if closes => {
                state = State::Comment;
                at += "</script".len();
            }
            (State::Comment, [b'<', rest @ ..]) if names(rest, b"script") => {
                state = State::ScriptInComment;
                at += "<script".len();
            }
            // The reference's tokenizer takes any other character after it for the end of the comment.
            (State::Comment, [b'<', byte, ..]) if *byte != b'/' && !byte.is_ascii_alphabetic() => {
                state = State::Script;
            }
            _ => {}
        }
        dashes = if rest.starts_with(b"-") { dashes + 1 } else { 0 };
        at += 1;
    }
    page.len()
}

/// The length of a comment with its end, from behind `<!--`.
fn comment_length(text: &[u8]) -> usize {
    let mut dashes = 0;
    let mut is_beginning = true;
    for (at, byte) in text.iter().enumerate() {
        match byte {
            b'-' => {
                dashes += 1;
                continue;
            }
            b'>' if dashes >= 2 || is_beginning => return at + 1,
            b'!' if dashes >= 2 && text.get(at + 1) == Some(&b'>') => return at + 2,
            _ => {}
        }
        (dashes, is_beginning) = (0, false);
    }
    text.len()
}

/// A tag whose name begins at `at`, and its length; `None` when the page ends before it.
fn tag(page: &[u8], at: usize) -> Option<(Tag, usize)> {
    let mut reader = Reader { page, at };
    let name = reader.until(|byte| is_space(byte) || matches!(byte, b'/' | b'>'))?;
    let mut attributes = Vec::new();
    let mut keys = HashSet::new();
    // Behind the last attribute that has a value without quotes.
    let mut bare_end = 0;
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
        let key = without_nul(page.get(start..reader.at)?).to_ascii_lowercase();
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
                    _ => {
                        let value = reader.until(|byte| is_space(byte) || byte == b'>')?;
                        bare_end = reader.at;
                        value
                    }
                }
            }
            _ => &[],
        };
        // The first attribute of a name counts.
        if keys.len() >= MAX_KEYS || keys.insert(key.clone()) {
            attributes.push((key, decode(&with_newlines(&without_nul(value)))));
        }
    }
    let is_closed = bare_end != reader.at && page.get(reader.at - 1) == Some(&b'/');
    let name = without_nul(name).to_ascii_lowercase();
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

/// A text with U+FFFD in place of NUL, as names and values of attributes are read.
fn without_nul(text: &[u8]) -> Cow<'_, [u8]> {
    match memchr(0, text) {
        None => Cow::Borrowed(text),
        Some(_) => {
            let parts: Vec<&[u8]> = text.split(|byte| *byte == 0).collect();
            Cow::Owned(parts.join("\u{fffd}".as_bytes()))
        }
    }
}

/// A text with line feeds in place of carriage returns, alone or before a line feed.
fn with_newlines(text: &[u8]) -> Cow<'_, [u8]> {
    if memchr(b'\r', text).is_none() {
        return Cow::Borrowed(text);
    }
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        out.push(if byte == b'\r' { b'\n' } else { byte });
        if byte == b'\r' {
            bytes.next_if_eq(&b'\n');
        }
    }
    Cow::Owned(out)
}

/// Decodes the character references of an attribute's value.
fn decode(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = memchr(b'&', rest) {
        let (before, reference) = rest.split_at(at);
        out.extend_from_slice(before);
        rest = match decode_reference(reference, &mut out) {
            Some(length) => reference.get(length..).unwrap_or_default(),
            None => {
                out.push(b'&');
                reference.get(1..).unwrap_or_default()
            }
        };
    }
    out.extend_from_slice(rest);
    out
}

/// Appends the characters of a reference to `out`, and returns the reference's length.
fn decode_reference(text: &[u8], out: &mut Vec<u8>) -> Option<usize> {
    if let Some(number) = text.strip_prefix(b"&#") {
        let (code, length) = code_point(number)?;
        out.extend_from_slice(code.encode_utf8(&mut [0; 4]).as_bytes());
        return Some(2 + length);
    }
    let name = text.get(1..)?;
    let letters = name.iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
    let length = match name.get(letters) {
        Some(b';') => letters + 1,
        // It is the name of a parameter in a query.
        Some(b'=') => return None,
        _ => letters,
    };
    let characters = ENTITIES.get(name.get(..length)?)?;
    out.extend_from_slice(characters.as_bytes());
    Some(1 + length)
}

/// The character of a numeric reference, from behind `&#`, and the length of the number.
fn code_point(text: &[u8]) -> Option<(char, usize)> {
    let (radix, start) = match text {
        [b'x' | b'X', ..] => (16, 1),
        _ => (10, 0),
    };
    let mut code: u32 = 0;
    let mut length = start;
    while let Some(digit) = text.get(length).and_then(|byte| char::from(*byte).to_digit(radix)) {
        code = code.saturating_mul(radix).saturating_add(digit);
        length += 1;
    }
    if length == start {
        return None;
    }
    if text.get(length) == Some(&b';') {
        length += 1;
    }
    let character = match code {
        0 => None,
        0x80..=0x9f => WINDOWS_1252.chars().nth(code as usize - 0x80),
        code => char::from_u32(code),
    };
    Some((character.unwrap_or(char::REPLACEMENT_CHARACTER), length))
}

/// The characters that numeric references from 0x80 to 0x9F mean
/// (<https://html.spec.whatwg.org/multipage/parsing.html#numeric-character-reference-end-state>).
const WINDOWS_1252: &str = "\u{20ac}\u{81}\u{201a}\u{192}\u{201e}\u{2026}\u{2020}\u{2021}\u{2c6}\u{2030}\u{160}\
    \u{2039}\u{152}\u{8d}\u{17d}\u{8f}\u{90}\u{2018}\u{2019}\u{201c}\u{201d}\u{2022}\u{2013}\u{2014}\u{2dc}\
    \u{2122}\u{161}\u{203a}\u{153}\u{9d}\u{17e}\u{178}";

/// The named character references (<https://html.spec.whatwg.org/multipage/named-characters.html>): names with the
/// semicolon, where they need one, and their characters.
static ENTITIES: LazyLock<HashMap<&'static [u8], String>> = LazyLock::new(|| {
    let rows = include_str!("entities.table").lines().filter_map(|row| row.split_once(' '));
    let character = |code| u32::from_str_radix(code, 16).ok().and_then(char::from_u32);
    rows.map(|(name, codes)| (name.as_bytes(), codes.split(' ').filter_map(character).collect())).collect()
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn character_references_are_decoded() {
        let check = |text: &str, expected: &str| {
            assert_eq!(String::from_utf8_lossy(&decode(text.as_bytes())), expected);
        };
        check("a&amp;b&lt;&#62;&#x22;&apos;", "a&b<>\"'");
        check("&eacute;&eacute &NotEqualTilde;&CounterClockwiseContourIntegral;", "éé ≂̸∳");
        check("a&b=1&copy=1&copyx&copy-&hellip&bogus;&", "a&b=1&copy=1&copyx©-&hellip&bogus;&");
        check("&#0;&#xD800;&#x110000;&#99999999999;&#128;&#x9d;&#13;", "���\u{fffd}€\u{9d}\r");
        check("&#;&#x;&#&#65x&#x41", "&#;&#x;&#AxA");
    }

    #[test]
    fn a_table_has_all_named_references() {
        assert_eq!(ENTITIES.len(), 2231);
        assert!(ENTITIES.values().all(|characters| (1..=2).contains(&characters.chars().count())));
    }

    #[test]
    fn pages_are_split_as_browsers_split_them() {
        let check = |page: &str, expected: &[&str]| {
            let tokens = tokens(page.as_bytes()).map(|token| match token {
                Token::Other(bytes) => String::from_utf8_lossy(bytes).into_owned(),
                Token::Tag(Tag { name, attributes, is_closed }) => {
                    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                    let pairs =
                        attributes.iter().map(|(key, value)| format!(" {}={}", text(key), text(value)));
                    format!(
                        "[{}{}{}]",
                        text(&name),
                        pairs.collect::<String>(),
                        if is_closed { " /" } else { "" }
                    )
                }
            });
            assert_eq!(tokens.collect::<Vec<_>>(), expected, "{page}");
        };
        // Comments.
        check("<!--><a>", &["<!-->", "[a]"]);
        check("<!---><a>", &["<!--->", "[a]"]);
        check("<!----><a>", &["<!---->", "[a]"]);
        check("<!-- a --!> b --><a>", &["<!-- a --!>", " b -->", "[a]"]);
        check("<!-- a -- b --!-> <a> -->", &["<!-- a -- b --!-> <a> -->"]);
        // Attributes.
        check("<a b=1 B=2>", &["[a b=1]"]);
        check("<a b=c/>", &["[a b=c/]"]);
        check("<a b=\"c\"/>", &["[a b=c /]"]);
        check("<a\0 b\0c='\0\r\n\r'>", &["[a\u{fffd} b\u{fffd}c=\u{fffd}\n\n]"]);
        check("</a b='>'><p>", &["</a b='>'>", "[p]"]);
        check("x</a b='", &["x"]);
        // Elements whose contents are text.
        check("<noscript><a></noscript>", &["[noscript]", "<a>", "</noscript>"]);
        check(
            "<script><!-- <script> </script> <a> --> </script><a>",
            &["[script]", "<!-- <script> </script> <a> --> ", "</script>", "[a]"],
        );
        check("<script><!--<script>--></script><a>", &["[script]", "<!--<script>-->", "</script>", "[a]"]);
        check("<script><!-- </script><a>", &["[script]", "<!-- ", "</script>", "[a]"]);
        check("<script><!--<scripts></script><a>", &["[script]", "<!--<scripts>", "</script>", "[a]"]);
        check("<script>1<2</scripts></SCRIPT >", &["[script]", "1<2</scripts>", "</SCRIPT >"]);
    }

    #[test]
    fn a_page_of_openings_is_read_in_linear_time() {
        for piece in ["<", "<a", "<!--", "</", "<a b=", "<script>", "<script><!--<script>", "&a", "<a b='"] {
            let page = piece.repeat((1 << 20) / piece.len());
            assert!(tokens(page.as_bytes()).count() <= page.len());
        }
    }
}
