//! Splits Rust sources into tokens, without comments and lifetimes, and finds attributes and test-only items.

use super::read;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// An identifier, a keyword or a number.
    Word,
    /// The contents of a string or character literal, escapes as written.
    Literal,
    /// One character of punctuation, or `::`.
    Mark,
}

#[derive(Debug, Clone)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) text: String,
    /// Counted from one.
    pub(super) line: usize,
}

impl Token {
    pub(super) fn is(&self, text: &str) -> bool {
        self.kind != Kind::Literal && self.text == text
    }

    pub(super) fn is_name(&self) -> bool {
        self.kind == Kind::Word && !self.text.starts_with(|first: char| first.is_ascii_digit())
    }
}

/// The tokens of a file of the repository.
pub(super) fn tokens_of(file: &str) -> Vec<Token> {
    tokens(&read(file))
}

pub(super) fn tokens(source: &str) -> Vec<Token> {
    let mut scanner = Scanner { rest: source, line: 1, tokens: Vec::new() };
    while !scanner.rest.is_empty() {
        scanner.step();
    }
    scanner.tokens
}

struct Scanner<'a> {
    rest: &'a str,
    line: usize,
    tokens: Vec<Token>,
}

impl Scanner<'_> {
    fn step(&mut self) {
        let first = self.rest.chars().next().unwrap();
        if self.rest.starts_with("//") {
            self.skip(self.rest.find('\n').unwrap_or(self.rest.len()));
        } else if self.rest.starts_with("/*") {
            self.skip(block_comment(self.rest));
        } else if let Some((start, end, length)) = string(self.rest) {
            self.push(Kind::Literal, start, end, length);
        } else if first == '\'' {
            match character(self.rest) {
                Some(length) => self.push(Kind::Literal, 1, length - 1, length),
                None => self.skip(1 + word(&self.rest[1..])),
            }
        } else if self.rest.starts_with("r#") {
            let length = 2 + word(&self.rest[2..]);
            self.push(Kind::Word, 2, length, length);
        } else if first == '_' || first.is_alphanumeric() {
            let length = word(self.rest);
            self.push(Kind::Word, 0, length, length);
        } else if self.rest.starts_with("::") {
            self.push(Kind::Mark, 0, 2, 2);
        } else if first.is_whitespace() {
            self.skip(first.len_utf8());
        } else {
            self.push(Kind::Mark, 0, first.len_utf8(), first.len_utf8());
        }
    }

    fn push(&mut self, kind: Kind, start: usize, end: usize, length: usize) {
        self.tokens.push(Token { kind, text: self.rest[start..end].to_owned(), line: self.line });
        self.skip(length);
    }

    fn skip(&mut self, length: usize) {
        let (skipped, rest) = self.rest.split_at(length);
        self.line += skipped.matches('\n').count();
        self.rest = rest;
    }
}

fn word(text: &str) -> usize {
    text.find(|c: char| c != '_' && !c.is_alphanumeric()).unwrap_or(text.len())
}

fn block_comment(text: &str) -> usize {
    let (mut at, mut depth) = (0, 0);
    loop {
        if text[at..].starts_with("/*") {
            (at, depth) = (at + 2, depth + 1);
        } else if text[at..].starts_with("*/") {
            (at, depth) = (at + 2, depth - 1);
        } else {
            at += text[at..].chars().next().expect("comments end").len_utf8();
        }
        if depth == 0 {
            return at;
        }
    }
}

/// Start and end of the contents of the string literal that `text` begins with, and its length.
fn string(text: &str) -> Option<(usize, usize, usize)> {
    let prefix = ["br", "cr", "r", "b", "c", ""].into_iter().find(|prefix| {
        text.strip_prefix(prefix).is_some_and(|rest| {
            let hashes = if prefix.ends_with('r') { rest.trim_start_matches('#') } else { rest };
            hashes.starts_with('"')
        })
    })?;
    if prefix.ends_with('r') {
        let hashes = text[prefix.len()..].find('"')?;
        let start = prefix.len() + hashes + 1;
        let end = start + text[start..].find(&format!("\"{}", "#".repeat(hashes)))?;
        return Some((start, end, end + 1 + hashes));
    }
    let start = prefix.len() + 1;
    let mut escaped = false;
    let end = text[start..].find(|c: char| {
        let ends = c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        ends
    })?;
    Some((start, start + end, start + end + 1))
}

/// The length of the character literal that `text` begins with, if it is not a lifetime.
fn character(text: &str) -> Option<usize> {
    let mut characters = text.char_indices().skip(1);
    let (_, first) = characters.next()?;
    if first == '\\' {
        characters.next();
        return characters.find(|(_, c)| *c == '\'').map(|(at, _)| at + 1);
    }
    characters.next().filter(|(_, c)| *c == '\'').map(|(at, _)| at + 1)
}

/// The index after the bracket that closes the one at `open`.
pub(super) fn after_closing(tokens: &[Token], open: usize) -> usize {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        if token.kind != Kind::Mark {
            continue;
        }
        match token.text.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    tokens.len()
}

/// The tokens of the attribute that begins at `at`.
pub(super) fn attribute(tokens: &[Token], at: usize) -> Option<&[Token]> {
    if !tokens.get(at)?.is("#") {
        return None;
    }
    let open = if tokens.get(at + 1)?.is("!") { at + 2 } else { at + 1 };
    if !tokens.get(open)?.is("[") {
        return None;
    }
    tokens.get(at..after_closing(tokens, open))
}

/// The tokens less the items that have `#[cfg(test)]`.
pub(super) fn without_tests(tokens: &[Token]) -> Vec<Token> {
    let mut kept = Vec::new();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let Some(attribute) = attribute(tokens, at) else {
            kept.push(token.clone());
            at += 1;
            continue;
        };
        let has = |word: &str| attribute.iter().any(|token| token.is(word));
        if has("cfg") && has("test") && !has("not") {
            if has("!") {
                return Vec::new();
            }
            at = after_item(tokens, at + attribute.len());
        } else {
            kept.extend_from_slice(attribute);
            at += attribute.len();
        }
    }
    kept
}

/// The index after the item, statement or field at `at`, which may have further attributes.
fn after_item(tokens: &[Token], mut at: usize) -> usize {
    while let Some(attribute) = attribute(tokens, at) {
        at += attribute.len();
    }
    while let Some(token) = tokens.get(at).filter(|token| !token.is("}")) {
        match token.text.as_str() {
            ";" => return at + 1,
            "{" => return after_closing(tokens, at),
            "(" | "[" => at = after_closing(tokens, at),
            _ => at += 1,
        }
    }
    at
}

#[test]
fn comments_literals_and_lifetimes_are_told_apart() {
    let source = r####"fn f<'a>(x: &'a str) /* "/* */ */ { '"'; '\''; b'x'; r#"a"b"#; "\\"; "\"c"; 'é'; 1.5 } // '"####;
    let texts: Vec<String> = tokens(source).into_iter().map(|token| token.text).collect();
    let expected = "fn f < > ( x : & str ) { \" ; \\' ; b x ; a\"b ; \\\\ ; \\\"c ; é ; 1 . 5 }";
    assert_eq!(texts.join(" "), expected);
}

#[test]
fn test_only_items_are_left_out() {
    let source = "a #[cfg(test)] #[allow(x)] mod tests { use b; } #[cfg(test)] mod c; #[cfg(unix)] d #[cfg(not(test))] e";
    let texts: Vec<String> = without_tests(&tokens(source)).into_iter().map(|token| token.text).collect();
    assert_eq!(texts.join(" "), "a # [ cfg ( unix ) ] d # [ cfg ( not ( test ) ) ] e");
}
