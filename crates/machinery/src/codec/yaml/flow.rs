//! Finds flow collections (`[…]`, `{…}`) ahead of the parser.
//!
//! The scanner holds all tokens of a flow collection until it has read the whole collection, which could still be the key
//! of a mapping. Tokens take hundreds of times the memory of their text, so they are counted before they are read.
//!
//! From the parser's position on, everything that can stand before a collection is skipped: blanks, comments, indicators,
//! anchors, tags, and quoted texts and aliases, which could be keys themselves.

use std::iter::Peekable;
use std::str::CharIndices;

/// Finds flow collections ahead of the parser.
pub(super) struct FlowFinder<'t> {
    text: &'t str,
    /// The parser's last position, in characters and in bytes.
    characters: usize,
    bytes: usize,
    /// The end of the text searched so far, in bytes.
    looked_to: usize,
}

impl<'t> FlowFinder<'t> {
    pub(super) fn new(text: &'t str) -> FlowFinder<'t> {
        FlowFinder { text, characters: 0, bytes: 0, looked_to: 0 }
    }

    /// Returns the number of separators in the collection that the parser reads next from this character: 0 when it
    /// reads something else, or the collection was counted before.
    pub(super) fn ahead(&mut self, character: usize) -> usize {
        self.go_to(character);
        if self.bytes < self.looked_to {
            return 0;
        }
        let Some(rest) = self.text.get(self.bytes..) else { return 0 };
        let mut cursor = Cursor { text: rest, chars: rest.char_indices().peekable() };
        cursor.skip_to_content();
        let separators = cursor.collection();
        // Each position is searched once.
        self.looked_to = self.bytes + cursor.position().max(1);
        separators
    }

    fn go_to(&mut self, character: usize) {
        let Some(more) = character.checked_sub(self.characters) else { return };
        let rest = self.text.get(self.bytes..).unwrap_or_default();
        let bytes = rest.char_indices().nth(more).map_or(rest.len(), |(at, _)| at);
        self.characters = character;
        self.bytes += bytes;
    }
}

struct Cursor<'t> {
    text: &'t str,
    chars: Peekable<CharIndices<'t>>,
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn is_indicator(c: char) -> bool {
    matches!(c, '[' | ']' | '{' | '}' | ',')
}

impl Cursor<'_> {
    fn peek(&mut self) -> Option<char> {
        self.chars.peek().map(|(_, c)| *c)
    }

    fn position(&mut self) -> usize {
        self.chars.peek().map_or(self.text.len(), |(at, _)| *at)
    }

    fn skip_until(&mut self, ends: impl Fn(char) -> bool) {
        while self.chars.next_if(|(_, c)| !ends(*c)).is_some() {}
    }

    /// Skips blanks, comments, indicators, anchors, tags, aliases and quoted texts.
    fn skip_to_content(&mut self) {
        while let Some(c) = self.peek() {
            match c {
                c if is_blank(c) || matches!(c, '-' | '?' | ':' | '.') => drop(self.chars.next()),
                '#' | '%' => self.skip_until(|c| matches!(c, '\n' | '\r')),
                '&' | '*' | '!' => self.skip_until(|c| is_blank(c) || is_indicator(c)),
                '"' | '\'' => self.quoted(c),
                _ => return,
            }
        }
    }

    /// A quoted text, from its first quote on.
    fn quoted(&mut self, quote: char) {
        self.chars.next();
        while let Some((_, c)) = self.chars.next() {
            match c {
                '\\' if quote == '"' => drop(self.chars.next()),
                // Inside single quotes, two quotes are an escaped one.
                c if c == quote && quote == '\'' && self.peek() == Some(quote) => drop(self.chars.next()),
                c if c == quote => return,
                _ => {}
            }
        }
    }

    /// The number of separators of the collection that begins here; 0 if none begins here.
    fn collection(&mut self) -> usize {
        let (mut depth, mut separators) = (0_usize, 0);
        // Whether a quoted text may begin here.
        let mut is_start = true;
        let mut is_after_blank = true;
        while let Some(c) = self.peek() {
            match c {
                '[' | '{' => (depth, is_start) = (depth + 1, true),
                _ if depth == 0 => break,
                ']' | '}' => (depth, is_start) = (depth - 1, true),
                ',' => is_start = true,
                '#' if is_after_blank => self.skip_until(|c| matches!(c, '\n' | '\r')),
                '"' | '\'' if is_start => {
                    self.quoted(c);
                    (is_start, is_after_blank) = (true, false);
                    continue;
                }
                '&' | '*' | '!' if is_start => {
                    self.skip_until(|c| is_blank(c) || is_indicator(c));
                    is_after_blank = false;
                    continue;
                }
                c if is_blank(c) => {}
                ':' | '?' | '-' => {
                    self.chars.next();
                    separators += usize::from(c == ':');
                    is_after_blank = false;
                    // Before a blank this is an indicator, otherwise part of a text.
                    let ends = self.peek().is_none_or(|next| is_blank(next) || is_indicator(next));
                    is_start = ends || is_start && c == ':';
                    continue;
                }
                _ => is_start = false,
            }
            if is_indicator(c) {
                separators += 1;
            }
            is_after_blank = is_blank(c);
            self.chars.next();
            if depth == 0 {
                break;
            }
        }
        separators
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: usize) {
        assert_eq!(FlowFinder::new(text).ahead(0), expected, "{text}");
    }

    #[test]
    fn collections_are_found_behind_what_may_stand_before_them() {
        check("[a, b]", 3);
        check("  - - ? &a !t # c\n [ {a: b}, c ]", 6);
        check("\"k]\" [a,b]", 3);
        check("'it''s' : {a: 1}", 3);
        check("*a : [a]", 2);
        check("--- [a]", 2);
        check("plain [a, b]", 0);
        check("|\n [a, b]", 0);
        check("", 0);
    }

    #[test]
    fn quotes_and_comments_do_not_end_a_collection() {
        check("[\"]\", ']]', a'b, \"\\\"]\", c]", 6);
        check("[a #]\n, b]", 3);
        check("{\"a\":\"}\",b: '}'}", 5);
        check("[a:'b, c]", 4);
        check("[&x ']', !t ']', - ']']", 4);
        check("[a", 1);
    }

    #[test]
    fn each_is_counted_once() {
        let mut finder = FlowFinder::new("a: [x, y]\nb: é[1]\nc: [2]");
        assert_eq!(finder.ahead(0), 0);
        assert_eq!(finder.ahead(1), 3);
        assert_eq!(finder.ahead(3), 0);
        assert_eq!(finder.ahead(9), 0);
        assert_eq!(finder.ahead(11), 0);
        assert_eq!(finder.ahead(19), 2);
    }
}
