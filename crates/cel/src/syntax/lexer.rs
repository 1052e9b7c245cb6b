//! Splits text into tokens.

use super::token::{Token, TokenKind};
use crate::issue::Issue;
use crate::source::Source;

/// The tokens of a source, ending with one of kind `End`, and the errors.
pub(super) fn tokens<'a>(source: &Source<'a>) -> (Vec<Token<'a>>, Vec<Issue>) {
    let mut lexer = Lexer { text: source.text(), position: 0, offset: 0 };
    let mut tokens = Vec::new();
    let mut issues = Vec::new();
    loop {
        lexer.skip_blank();
        let (start, offset) = (lexer.position, lexer.offset);
        if start >= lexer.text.len() {
            tokens.push(Token { kind: TokenKind::End, text: "", offset, start });
            return (tokens, issues);
        }
        let scanned = lexer.scan();
        // Unreadable text is skipped, including the first invalid character.
        let (kind, end) = match scanned {
            Ok((kind, length)) => (Some(kind), start + length),
            Err(length) => (None, lexer.boundary_after(start + length)),
        };
        let text = lexer.text.get(start..end).unwrap_or_default();
        lexer.advance_to(end);
        match kind {
            Some(kind) => tokens.push(Token { kind, text, offset, start }),
            None => issues.push(Issue {
                location: source.location(offset),
                message: format!("Syntax error: token recognition error at: '{text}'"),
            }),
        }
    }
}

struct Lexer<'a> {
    text: &'a str,
    /// In bytes.
    position: usize,
    /// In code points.
    offset: u32,
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.position..).unwrap_or_default()
    }

    fn advance_to(&mut self, end: usize) {
        let skipped = self.text.get(self.position..end).unwrap_or_default();
        self.offset = self.offset.saturating_add(u32::try_from(skipped.chars().count()).unwrap_or(u32::MAX));
        self.position = end;
    }

    /// The end of the character at a byte offset, or of the text.
    fn boundary_after(&self, at: usize) -> usize {
        let next = self.text.get(at..).and_then(|rest| rest.chars().next());
        next.map_or(self.text.len(), |character| at + character.len_utf8())
    }

    fn skip_blank(&mut self) {
        loop {
            let rest = self.rest();
            let blank = rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n', '\u{c}']).len();
            let comment =
                if blank == 0 && rest.starts_with("//") { rest.find('\n').unwrap_or(rest.len()) } else { 0 };
            if blank + comment == 0 {
                return;
            }
            self.advance_to(self.position + blank + comment);
        }
    }

    /// The kind and length of the next token, or the length of an invalid prefix.
    fn scan(&self) -> Result<(TokenKind, usize), usize> {
        use TokenKind::*;
        let rest = self.rest();
        let bytes = rest.as_bytes();
        let at = |index: usize| bytes.get(index).copied().unwrap_or(0);
        if let Some((kind, quote)) = string_start(bytes) {
            match string_length(rest, quote) {
                Ok(length) => return Ok((kind, length)),
                Err(length) if quote == 0 => return Err(length),
                // The prefix is an identifier then.
                Err(_) => {}
            }
        }
        let two = |second: u8, kind, otherwise: Option<TokenKind>| match (at(1) == second, otherwise) {
            (true, _) => Ok((kind, 2)),
            (false, Some(kind)) => Ok((kind, 1)),
            (false, None) => Err(1),
        };
        match at(0) {
            b'=' => two(b'=', Equals, None),
            b'!' => two(b'=', NotEquals, Some(Not)),
            b'<' => two(b'=', LessEquals, Some(Less)),
            b'>' => two(b'=', GreaterEquals, Some(Greater)),
            b'&' => two(b'&', And, None),
            b'|' => two(b'|', Or, None),
            b'[' => Ok((OpenBracket, 1)),
            b']' => Ok((CloseBracket, 1)),
            b'{' => Ok((OpenBrace, 1)),
            b'}' => Ok((CloseBrace, 1)),
            b'(' => Ok((OpenParenthesis, 1)),
            b')' => Ok((CloseParenthesis, 1)),
            b',' => Ok((Comma, 1)),
            b'-' => Ok((Minus, 1)),
            b'?' => Ok((Question, 1)),
            b':' => Ok((Colon, 1)),
            b'+' => Ok((Plus, 1)),
            b'*' => Ok((Star, 1)),
            b'/' => Ok((Slash, 1)),
            b'%' => Ok((Percent, 1)),
            b'.' if !at(1).is_ascii_digit() => Ok((Dot, 1)),
            b'.' | b'0'..=b'9' => Ok(number(bytes)),
            b'`' => {
                let inside = |byte: &u8| byte.is_ascii_alphanumeric() || b"_.-/ ".contains(byte);
                let length = bytes.iter().skip(1).take_while(|byte| inside(byte)).count();
                if length > 0 && at(1 + length) == b'`' {
                    Ok((EscapedIdentifier, length + 2))
                } else {
                    Err(1 + length)
                }
            }
            byte if byte == b'_' || byte.is_ascii_alphabetic() => {
                let length =
                    bytes.iter().take_while(|byte| **byte == b'_' || byte.is_ascii_alphanumeric()).count();
                let kind = match rest.get(..length) {
                    Some("in") => In,
                    Some("true") => True,
                    Some("false") => False,
                    Some("null") => Null,
                    _ => Identifier,
                };
                Ok((kind, length))
            }
            _ => Err(0),
        }
    }
}

/// The kind of string that begins here, and the length of its prefix.
fn string_start(bytes: &[u8]) -> Option<(TokenKind, usize)> {
    let is = |index: usize, any: &[u8]| bytes.get(index).is_some_and(|byte| any.contains(byte));
    let bytes_prefix = usize::from(is(0, b"bB"));
    let raw_prefix = usize::from(is(bytes_prefix, b"rR"));
    let prefix = bytes_prefix + raw_prefix;
    let kind = if bytes_prefix == 1 { TokenKind::Bytes } else { TokenKind::String };
    is(prefix, b"'\"").then_some((kind, prefix))
}

/// The length of the string whose quote follows `prefix` bytes, or of its readable part.
fn string_length(text: &str, prefix: usize) -> Result<usize, usize> {
    let bytes = text.as_bytes();
    let raw = text.get(..prefix).is_some_and(|prefix| prefix.contains(['r', 'R']));
    let quote = text.get(prefix..prefix + 1).unwrap_or("'");
    let triple = quote.repeat(3);
    let (end, many_lines) = if text.get(prefix..).is_some_and(|rest| rest.starts_with(&triple)) {
        (triple.as_str(), true)
    } else {
        (quote, false)
    };
    let mut at = prefix + end.len();
    loop {
        let rest = bytes.get(at..).unwrap_or_default();
        if rest.starts_with(end.as_bytes()) {
            return Ok(at + end.len());
        }
        match rest.first() {
            None => {
                // `''` without a third quote matched above; `'''abc` may still begin with the empty string `''`.
                return if many_lines { Ok(prefix + 2) } else { Err(at) };
            }
            Some(b'\n' | b'\r') if !many_lines => return Err(at),
            Some(b'\\') if !raw => match escape_length(rest) {
                Ok(length) => at += length,
                Err(_) if many_lines => return Ok(prefix + 2),
                Err(valid) => return Err(at + valid),
            },
            Some(_) => at += 1,
        }
    }
}

/// The length of an escape sequence, or of its valid prefix.
fn escape_length(bytes: &[u8]) -> Result<usize, usize> {
    let digits = |count: usize, is_digit: fn(&u8) -> bool| {
        let found = bytes.iter().skip(2).take(count).take_while(|byte| is_digit(byte)).count();
        if found == count { Ok(2 + count) } else { Err(2 + found) }
    };
    match bytes.get(1) {
        Some(b'a' | b'b' | b'f' | b'n' | b'r' | b't' | b'v' | b'"' | b'\'' | b'\\' | b'?' | b'`') => Ok(2),
        Some(b'x' | b'X') => digits(2, u8::is_ascii_hexdigit),
        Some(b'u') => digits(4, u8::is_ascii_hexdigit),
        Some(b'U') => digits(8, u8::is_ascii_hexdigit),
        Some(b'0'..=b'3') => digits(2, |byte| (b'0'..=b'7').contains(byte)),
        _ => Err(1),
    }
}

/// The kind and length of a number. The first byte is a digit, or a dot before one.
fn number(bytes: &[u8]) -> (TokenKind, usize) {
    let digits = |from: usize| bytes.iter().skip(from).take_while(|byte| byte.is_ascii_digit()).count();
    let is = |index: usize, any: &[u8]| bytes.get(index).is_some_and(|byte| any.contains(byte));
    let whole = digits(0);
    let hex = bytes.iter().skip(2).take_while(|byte| byte.is_ascii_hexdigit()).count();
    if bytes.starts_with(b"0x") && hex > 0 {
        let length = 2 + hex;
        return if is(length, b"uU") { (TokenKind::Uint, length + 1) } else { (TokenKind::Int, length) };
    }
    let fraction = if is(whole, b".") { digits(whole + 1) } else { 0 };
    let mantissa = if fraction > 0 { whole + 1 + fraction } else { whole };
    let exponent = if is(mantissa, b"eE") {
        let sign = usize::from(is(mantissa + 1, b"+-"));
        let exponent = digits(mantissa + 1 + sign);
        if exponent > 0 { 1 + sign + exponent } else { 0 }
    } else {
        0
    };
    if fraction + exponent > 0 {
        (TokenKind::Float, mantissa + exponent)
    } else if is(whole, b"uU") {
        (TokenKind::Uint, whole + 1)
    } else {
        (TokenKind::Int, whole)
    }
}
