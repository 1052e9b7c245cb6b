//! Accepts the same addresses as Go's `mail.ParseAddress` (<https://pkg.go.dev/net/mail#ParseAddress>): an address as
//! in RFC 5322, optionally with a display name or a comment, or a group of one.

use std::net::IpAddr;

/// Whether the text is exactly one address.
pub(super) fn is_email(text: &str) -> bool {
    let mut parser = Parser { rest: text };
    parser.addresses(true) == Some(1) && parser.comments() && parser.rest.is_empty()
}

#[derive(Clone, Copy)]
struct Parser<'t> {
    rest: &'t str,
}

impl Parser<'_> {
    /// The number of addresses: more than one only in a group.
    fn addresses(&mut self, groups: bool) -> Option<usize> {
        self.spaces();
        if self.rest.is_empty() {
            return None;
        }
        let before = *self;
        if self.spec() {
            self.spaces();
            if self.rest.starts_with('(') && !self.comment() {
                return None;
            }
            return Some(1);
        }
        *self = before;
        if !self.rest.starts_with('<') && !self.phrase() {
            return None;
        }
        self.spaces();
        if groups && self.take(':') {
            return self.group();
        }
        (self.take('<') && self.spec() && self.take('>')).then_some(1)
    }

    fn group(&mut self) -> Option<usize> {
        self.spaces();
        if self.take(';') {
            return self.comments().then_some(0);
        }
        let mut count = 0;
        loop {
            self.spaces();
            count += self.addresses(false)?;
            if !self.comments() {
                return None;
            }
            if self.take(';') {
                return self.comments().then_some(count);
            }
            if !self.take(',') {
                return None;
            }
        }
    }

    /// `local@domain`
    fn spec(&mut self) -> bool {
        self.spaces();
        let local = match self.rest.starts_with('"') {
            true => self.quoted().is_some_and(|quoted| quoted > 0),
            false => self.atom().is_some_and(is_dot_atom),
        };
        if !local || !self.take('@') {
            return false;
        }
        self.spaces();
        match self.rest.starts_with('[') {
            true => self.literal(),
            false => self.atom().is_some_and(is_dot_atom),
        }
    }

    /// Parses the words before an address. Malformed words after the first are tolerated.
    fn phrase(&mut self) -> bool {
        let mut words = 0;
        loop {
            if words > 0 && !self.comments() {
                return false;
            }
            self.spaces();
            let word = match self.rest.starts_with('"') {
                true => self.quoted().is_some(),
                false => self.atom().is_some_and(has_known_charset),
            };
            if !word {
                return words > 0;
            }
            words += 1;
        }
    }

    /// The number of characters between the quotes.
    fn quoted(&mut self) -> Option<usize> {
        let mut escaped = false;
        let mut count = 0;
        for (index, c) in self.rest.char_indices().skip(1) {
            match c {
                c if escaped => {
                    if !is_visible(c) && !matches!(c, ' ' | '\t') {
                        return None;
                    }
                    escaped = false;
                    count += 1;
                }
                '"' => {
                    self.rest = self.rest.get(index + 1..)?;
                    return Some(count);
                }
                '\\' => escaped = true,
                c if is_visible(c) || matches!(c, ' ' | '\t') => count += 1,
                _ => return None,
            }
        }
        None
    }

    fn atom(&mut self) -> Option<&str> {
        let end = self.rest.find(|c| !is_atom_text(c)).unwrap_or(self.rest.len());
        let (atom, rest) = self.rest.split_at_checked(end)?;
        self.rest = rest;
        (!atom.is_empty()).then_some(atom)
    }

    /// An IP address in brackets.
    fn literal(&mut self) -> bool {
        let Some((literal, rest)) = self.rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) else {
            return false;
        };
        self.rest = rest;
        literal.parse::<IpAddr>().is_ok()
    }

    fn comments(&mut self) -> bool {
        self.spaces();
        while self.rest.starts_with('(') {
            if !self.comment() {
                return false;
            }
            self.spaces();
        }
        true
    }

    /// Text in parentheses, which may be nested.
    fn comment(&mut self) -> bool {
        let mut depth = 0usize;
        let mut escaped = false;
        for (index, c) in self.rest.char_indices() {
            match c {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                self.rest = self.rest.get(index + 1..).unwrap_or_default();
                return true;
            }
        }
        false
    }

    fn spaces(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t']);
    }

    fn take(&mut self, c: char) -> bool {
        match self.rest.strip_prefix(c) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }
}

fn is_visible(c: char) -> bool {
    !c.is_ascii() || c.is_ascii_graphic()
}

fn is_atom_text(c: char) -> bool {
    is_visible(c) && !matches!(c, '(' | ')' | '<' | '>' | '[' | ']' | ':' | ';' | '@' | '\\' | ',' | '"')
}

fn is_dot_atom(atom: &str) -> bool {
    !atom.starts_with('.') && !atom.ends_with('.') && !atom.contains("..")
}

/// An encoded word (`=?charset?q?text?=`) must be in a character set that Go knows.
fn has_known_charset(word: &str) -> bool {
    let encoded = word.strip_prefix("=?").and_then(|word| word.strip_suffix("?="));
    let parts: Vec<&str> = encoded.unwrap_or_default().split('?').collect();
    match parts.as_slice() {
        [charset, encoding, _] if !charset.is_empty() && matches!(*encoding, "q" | "Q" | "b" | "B") => {
            ["utf-8", "iso-8859-1", "us-ascii"].contains(&charset.to_ascii_lowercase().as_str())
        }
        _ => true,
    }
}
