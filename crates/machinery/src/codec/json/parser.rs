//! Splits JSON into tokens, with Go's messages for syntax errors.

use std::borrow::Cow;

use super::plain::plain_length;
use crate::codec::error::{DecodeError, Fallible};
use crate::codec::weight::{ITEM, LIST, MEMBER, OBJECT, TEXT, Weight};
use pintle_go_forms::quote_byte;

/// The maximum nesting depth of skipped values, of which no tree is built; the same as Go's.
pub(super) const MAX_SKIPPED_DEPTH: usize = 10_000;

pub(crate) struct Parser<'d> {
    data: &'d [u8],
    /// The same input, if all of it is UTF-8: one check is cheaper than a check of each string.
    text: Option<&'d str>,
    pos: usize,
    /// The memory that the tree may still take.
    weight: Weight,
}

impl<'d> Parser<'d> {
    pub(crate) fn new(data: &'d [u8], weight: Weight) -> Self {
        Self { data, text: std::str::from_utf8(data).ok(), pos: 0, weight }
    }

    /// The position in the text, for [`Parser::rewind`].
    pub(super) fn position(&self) -> usize {
        self.pos
    }

    /// Goes back to an earlier position.
    pub(super) fn rewind(&mut self, position: usize) {
        self.pos = position;
    }

    /// Counts a text of the tree.
    pub(crate) fn add_text(&mut self, len: usize) -> Fallible<()> {
        self.weight.add(len + TEXT)
    }

    /// The memory left for the rest of the tree.
    pub(crate) fn weight(&self) -> Weight {
        self.weight
    }

    /// The first byte of the next token.
    pub(crate) fn peek(&mut self) -> Option<u8> {
        while let Some(&byte) = self.data.get(self.pos) {
            if !matches!(byte, b' ' | b'\n' | b'\t' | b'\r') {
                return Some(byte);
            }
            self.pos += 1;
        }
        None
    }

    /// The first byte of a value.
    pub(crate) fn peek_value(&mut self) -> Fallible<u8> {
        match self.peek() {
            Some(byte @ (b'{' | b'[' | b'"' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n')) => Ok(byte),
            _ => Err(self.unexpected("looking for beginning of value")),
        }
    }

    fn bump(&mut self) {
        self.pos += 1;
    }

    /// Enters the object or list that starts here. Returns whether it has content.
    pub(crate) fn open(&mut self, close: u8) -> bool {
        self.bump();
        if self.peek() == Some(close) {
            self.bump();
            return false;
        }
        true
    }

    /// As [`Parser::open`], for an object of the tree.
    pub(crate) fn open_object(&mut self) -> Fallible<bool> {
        self.weight.add(OBJECT)?;
        Ok(self.open(b'}'))
    }

    /// As [`Parser::open`], for a list of the tree.
    pub(crate) fn open_list(&mut self) -> Fallible<bool> {
        let more = self.open(b']');
        if more {
            self.weight.add(LIST)?;
        }
        Ok(more)
    }

    /// The key of the next member, up to and with the colon.
    pub(crate) fn key(&mut self) -> Fallible<Cow<'d, str>> {
        if self.peek() != Some(b'"') {
            return Err(self.unexpected("looking for beginning of object key string"));
        }
        let key = self.string()?;
        if self.peek() != Some(b':') {
            return Err(self.unexpected("after object key"));
        }
        self.bump();
        Ok(key)
    }

    /// Whether another member follows.
    pub(crate) fn next_member(&mut self) -> Fallible<bool> {
        self.weight.add(MEMBER)?;
        self.pass_member()
    }

    fn pass_member(&mut self) -> Fallible<bool> {
        self.next(b'}', "after object key:value pair")
    }

    /// Whether another item follows.
    pub(crate) fn next_item(&mut self) -> Fallible<bool> {
        self.weight.add(ITEM)?;
        self.pass_item()
    }

    fn pass_item(&mut self) -> Fallible<bool> {
        self.next(b']', "after array element")
    }

    fn next(&mut self, close: u8, context: &str) -> Fallible<bool> {
        match self.peek() {
            Some(b',') => {
                self.bump();
                Ok(true)
            }
            Some(byte) if byte == close => {
                self.bump();
                Ok(false)
            }
            _ => Err(self.unexpected(context)),
        }
    }

    /// Fails unless only white space follows the value.
    pub(crate) fn end(&mut self) -> Fallible<()> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.unexpected("after top-level value")),
        }
    }

    /// Reads the string that starts here. Invalid UTF-8 and lone surrogates become replacement characters.
    pub(crate) fn string(&mut self) -> Fallible<Cow<'d, str>> {
        let start = self.pos + 1;
        let rest = self.data.get(start..).unwrap_or_default();
        let len = plain_length(rest);
        if rest.get(len) == Some(&b'"')
            && let Some(string) = self.text.and_then(|text| text.get(start..start + len))
        {
            self.pos = start + len + 1;
            self.weight.add(len + TEXT)?;
            return Ok(Cow::Borrowed(string));
        }
        let string = self.unescape()?;
        self.weight.add(string.len() + TEXT)?;
        Ok(Cow::Owned(string))
    }

    fn unescape(&mut self) -> Fallible<String> {
        self.bump();
        let mut out = Vec::new();
        loop {
            let rest = self.data.get(self.pos..).unwrap_or_default();
            let plain = rest.get(..plain_length(rest)).unwrap_or_default();
            out.extend_from_slice(plain);
            self.pos += plain.len();
            let Some(&byte) = self.data.get(self.pos) else { return Err(self.unexpected("")) };
            match byte {
                b'"' => {
                    self.bump();
                    break;
                }
                b'\\' => {
                    self.bump();
                    self.escape(&mut out)?;
                }
                _ => return Err(self.unexpected("in string literal")),
            }
        }
        Ok(match String::from_utf8(out) {
            Ok(text) => text,
            Err(error) => replace_invalid(error.as_bytes()),
        })
    }

    fn escape(&mut self, out: &mut Vec<u8>) -> Fallible<()> {
        let simple = match self.data.get(self.pos) {
            Some(b'b') => b'\x08',
            Some(b'f') => b'\x0c',
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(&byte @ (b'"' | b'\\' | b'/')) => byte,
            Some(b'u') => {
                self.bump();
                let unit = self.hex()?;
                let c = match char::from_u32(unit) {
                    Some(c) => c,
                    None => self.surrogate(unit)?,
                };
                out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                return Ok(());
            }
            _ => return Err(self.unexpected_in_token("in string escape code")),
        };
        out.push(simple);
        self.bump();
        Ok(())
    }

    fn hex(&mut self) -> Fallible<u32> {
        let mut unit = 0;
        for _ in 0..4 {
            let digit = self.data.get(self.pos).and_then(|&byte| char::from(byte).to_digit(16));
            let Some(digit) = digit else {
                return Err(self.unexpected_in_token("in \\u hexadecimal character escape"));
            };
            unit = unit << 4 | digit;
            self.bump();
        }
        Ok(unit)
    }

    /// Reads the second half of a surrogate pair; a character after a lone surrogate is read on its own.
    fn surrogate(&mut self, first: u32) -> Fallible<char> {
        let after = self.pos;
        if first < 0xdc00 && self.data.get(after..after + 2) == Some(b"\\u") {
            self.pos += 2;
            let second = self.hex()?;
            if (0xdc00..0xe000).contains(&second) {
                let c = 0x10000 + ((first - 0xd800) << 10 | (second - 0xdc00));
                return Ok(char::from_u32(c).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            self.pos = after;
        }
        Ok(char::REPLACEMENT_CHARACTER)
    }

    /// The number that starts here, as text.
    pub(crate) fn number(&mut self) -> Fallible<&'d str> {
        let start = self.pos;
        if self.data.get(self.pos) == Some(&b'-') {
            self.bump();
        }
        match self.data.get(self.pos) {
            Some(b'0') => self.bump(),
            Some(b'1'..=b'9') => self.digits(),
            _ => return Err(self.unexpected_in_token("in numeric literal")),
        }
        if self.data.get(self.pos) == Some(&b'.') {
            self.bump();
            if !self.at_digit() {
                return Err(self.unexpected_in_token("after decimal point in numeric literal"));
            }
            self.digits();
        }
        if let Some(b'e' | b'E') = self.data.get(self.pos) {
            self.bump();
            if let Some(b'+' | b'-') = self.data.get(self.pos) {
                self.bump();
            }
            if !self.at_digit() {
                return Err(self.unexpected_in_token("in exponent of numeric literal"));
            }
            self.digits();
        }
        let text = self.data.get(start..self.pos).unwrap_or_default();
        Ok(std::str::from_utf8(text).unwrap_or_default())
    }

    fn at_digit(&self) -> bool {
        self.data.get(self.pos).is_some_and(u8::is_ascii_digit)
    }

    fn digits(&mut self) {
        while self.at_digit() {
            self.bump();
        }
    }

    /// Reads `true`, `false` or `null`, chosen by its first letter.
    pub(crate) fn literal(&mut self) -> Fallible<()> {
        let word: &[u8] = match self.data.get(self.pos) {
            Some(b't') => b"true",
            Some(b'f') => b"false",
            _ => b"null",
        };
        for &expected in word {
            if self.data.get(self.pos) != Some(&expected) {
                let word = String::from_utf8_lossy(word);
                let context = format!("in literal {word} (expecting {})", quote_byte(expected));
                return Err(self.unexpected_in_token(&context));
            }
            self.bump();
        }
        Ok(())
    }

    /// Skips a value without recursion, up to the maximum depth. Returns its bytes.
    pub(crate) fn skip(&mut self) -> Fallible<&'d [u8]> {
        self.skip_within(MAX_SKIPPED_DEPTH)
    }

    /// Skips a value of at most this depth. Returns its bytes.
    pub(crate) fn skip_within(&mut self, depth: usize) -> Fallible<&'d [u8]> {
        let first = self.peek_value()?;
        let start = self.pos;
        // For each open value, whether it is an object.
        let mut open: Vec<bool> = Vec::new();
        let mut next = first;
        loop {
            let mut complete = true;
            match next {
                b'{' | b'[' => {
                    let object = next == b'{';
                    if self.open(if object { b'}' } else { b']' }) {
                        if open.len() >= depth {
                            let why = format!("invalid character {} exceeded max depth", quote_byte(next));
                            return Err(DecodeError::syntax(why));
                        }
                        open.push(object);
                        if object {
                            self.skip_key()?;
                        }
                        complete = false;
                    }
                }
                b'"' => self.skip_string()?,
                b't' | b'f' | b'n' => self.literal()?,
                _ => {
                    self.number()?;
                }
            }
            while complete {
                let Some(&object) = open.last() else {
                    return Ok(self.data.get(start..self.pos).unwrap_or_default());
                };
                let more = if object { self.pass_member()? } else { self.pass_item()? };
                if more {
                    if object {
                        self.skip_key()?;
                    }
                    complete = false;
                } else {
                    open.pop();
                }
            }
            next = self.peek_value()?;
        }
    }

    fn skip_key(&mut self) -> Fallible<()> {
        if self.peek() != Some(b'"') {
            return Err(self.unexpected("looking for beginning of object key string"));
        }
        self.skip_string()?;
        if self.peek() != Some(b':') {
            return Err(self.unexpected("after object key"));
        }
        self.bump();
        Ok(())
    }

    fn skip_string(&mut self) -> Fallible<()> {
        let start = self.pos;
        self.bump();
        loop {
            let rest = self.data.get(self.pos..).unwrap_or_default();
            let len = plain_length(rest);
            self.pos += len;
            match rest.get(len) {
                Some(b'"') => {
                    self.bump();
                    return Ok(());
                }
                Some(b'\\')
                    if matches!(
                        rest.get(len + 1),
                        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't')
                    ) =>
                {
                    self.pos += 2;
                }
                _ => {
                    // Rare: the complete reader reports the error, or skips the string.
                    self.pos = start;
                    return self.unescape().map(drop);
                }
            }
        }
    }

    /// The bytes of the string that starts here, quotes included.
    pub(crate) fn raw_string(&mut self) -> Fallible<&'d [u8]> {
        let start = self.pos;
        self.skip_string()?;
        Ok(self.data.get(start..self.pos).unwrap_or_default())
    }

    /// The error for the byte here, which the grammar does not allow.
    fn unexpected(&self, context: &str) -> Box<DecodeError> {
        match self.data.get(self.pos) {
            Some(&byte) => DecodeError::syntax(format!("invalid character {} {context}", quote_byte(byte))),
            None => DecodeError::syntax("unexpected end of JSON input"),
        }
    }

    /// As [`Self::unexpected`], inside of a token that no space can continue: Go's scanner ends a text with a space.
    fn unexpected_in_token(&self, context: &str) -> Box<DecodeError> {
        match self.data.get(self.pos) {
            Some(_) => self.unexpected(context),
            None => DecodeError::syntax(format!("invalid character ' ' {context}")),
        }
    }
}

/// Replaces every byte that is not part of a UTF-8 character by a replacement character.
fn replace_invalid(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        out.push_str(chunk.valid());
        out.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    out
}
