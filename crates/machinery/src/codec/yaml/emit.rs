//! Writes YAML in the style of Go's library, a port of libyaml.
//!
//! The writer keeps the same three facts about its position as libyaml: the column, whether the last character was
//! white space, and whether the line has only indentation so far. Every decision about line breaks follows from them.

use std::cmp::Ordering;

use pintle_tree::{Map, Text, Value};

use super::resolve::{Resolved, resolve};
use crate::codec::number::format_g;

const INDENT: usize = 2;
/// Spaces beyond this column, in characters, become line breaks.
const WIDTH: usize = 80;
/// Longer keys, in bytes, are written in the form with a question mark.
const MAX_SIMPLE_KEY: usize = 128;

pub(super) fn emit(value: &Value) -> String {
    let mut emitter = Emitter { out: String::new(), column: 0, whitespace: true, indention: true };
    emitter.node(value, Place::Root, None);
    emitter.write_indent(0);
    emitter.out
}

/// The position of a node in its parent.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Root,
    Item,
    /// A key on the line of its value.
    SimpleKey,
    /// A key of any form, or a value.
    Mapping,
}

#[derive(Clone, Copy, PartialEq)]
enum Style {
    Plain,
    SingleQuoted,
    DoubleQuoted,
    Literal,
}

struct Emitter {
    out: String,
    column: usize,
    whitespace: bool,
    indention: bool,
}

impl Emitter {
    /// `indent`: that of the enclosing collection, if any.
    fn node(&mut self, value: &Value, place: Place, indent: Option<usize>) {
        match value {
            Value::Null => self.scalar("null", Style::Plain, place, indent),
            Value::Bool(true) => self.scalar("true", Style::Plain, place, indent),
            Value::Bool(false) => self.scalar("false", Style::Plain, place, indent),
            Value::Number(number) => {
                let text = match number.as_f64() {
                    Some(float) if number.is_f64() => format_float(float),
                    _ => number.to_string(),
                };
                self.scalar(&text, Style::Plain, place, indent);
            }
            Value::String(text) => self.scalar(text, preferred_style(text), place, indent),
            Value::Array(items) if items.is_empty() => self.write_indicator("[]", true, false, false),
            Value::Array(items) => {
                // The items of a list that is a mapping value are written below the key, without extra indentation.
                let compact = place == Place::Mapping && !self.indention;
                let indent = match indent {
                    None => 0,
                    Some(indent) if compact => indent,
                    Some(indent) => indent + INDENT,
                };
                for item in items {
                    self.write_indent(indent);
                    self.write_indicator("-", true, false, true);
                    self.node(item, Place::Item, Some(indent));
                }
            }
            Value::Object(object) if object.is_empty() => self.write_indicator("{}", true, false, false),
            Value::Object(object) => {
                self.mapping(object, indent.map_or(0, |indent| indent + INDENT));
            }
        }
    }

    fn mapping(&mut self, object: &Map, indent: usize) {
        for (key, value) in in_natural_order(object) {
            self.write_indent(indent);
            if key.len() <= MAX_SIMPLE_KEY && !key.contains(is_break) {
                // A plain `<<` would be read as a merge.
                let style = if key == "<<" { Style::DoubleQuoted } else { preferred_style(key) };
                self.scalar(key, style, Place::SimpleKey, Some(indent));
                self.write_indicator(":", false, false, false);
            } else {
                self.write_indicator("?", true, false, true);
                self.scalar(key, preferred_style(key), Place::Mapping, Some(indent));
                self.write_indent(indent);
                self.write_indicator(":", true, false, true);
            }
            self.node(value, Place::Mapping, Some(indent));
        }
    }

    fn scalar(&mut self, text: &str, style: Style, place: Place, indent: Option<usize>) {
        let simple_key = place == Place::SimpleKey;
        // Continuation lines are indented by one step.
        let indent = indent.map_or(INDENT, |indent| indent + INDENT);
        match Analysis::of(text).style(style, text, simple_key) {
            Style::Plain => self.write_plain(text, !simple_key, indent),
            Style::SingleQuoted => self.write_single_quoted(text, !simple_key, indent),
            Style::DoubleQuoted => self.write_double_quoted(text, !simple_key, indent),
            Style::Literal => self.write_literal(text, indent),
        }
    }

    fn put(&mut self, c: char) {
        self.out.push(c);
        self.column += 1;
    }

    fn put_break(&mut self) {
        self.out.push('\n');
        self.column = 0;
    }

    /// Writes a line break of the text itself.
    fn write_break(&mut self, c: char) {
        if c == '\n' {
            self.put_break();
        } else {
            self.out.push(c);
            self.column = 0;
        }
    }

    fn write_indent(&mut self, indent: usize) {
        if !self.indention || self.column > indent || (self.column == indent && !self.whitespace) {
            self.put_break();
        }
        while self.column < indent {
            self.put(' ');
        }
        self.whitespace = true;
        self.indention = true;
    }

    fn write_indicator(&mut self, text: &str, needs_space: bool, is_space: bool, is_indention: bool) {
        if needs_space && !self.whitespace {
            self.put(' ');
        }
        text.chars().for_each(|c| self.put(c));
        self.whitespace = is_space;
        self.indention = self.indention && is_indention;
    }

    fn write_plain(&mut self, text: &str, may_break: bool, indent: usize) {
        if !self.whitespace {
            self.put(' ');
        }
        self.write_folded(text, may_break, indent, false);
        self.whitespace = false;
        self.indention = false;
    }

    fn write_single_quoted(&mut self, text: &str, may_break: bool, indent: usize) {
        self.write_indicator("'", true, false, false);
        self.write_folded(text, may_break, indent, true);
        self.write_indicator("'", false, false, false);
        self.whitespace = false;
        self.indention = false;
    }

    /// Writes plain or single-quoted text.
    fn write_folded(&mut self, text: &str, may_break: bool, indent: usize, quoted: bool) {
        let mut spaces = false;
        let mut breaks = false;
        for (at, c) in text.char_indices() {
            let next = text.get(at + c.len_utf8()..).and_then(|rest| rest.chars().next());
            if c == ' ' {
                let edge = quoted && (at == 0 || next.is_none());
                if may_break && !spaces && self.column > WIDTH && next != Some(' ') && !edge {
                    self.write_indent(indent);
                } else {
                    self.put(c);
                }
                spaces = true;
            } else if is_break(c) {
                if !breaks && c == '\n' {
                    self.put_break();
                }
                self.write_break(c);
                self.indention = true;
                breaks = true;
            } else {
                if breaks {
                    self.write_indent(indent);
                }
                if c == '\'' && quoted {
                    self.put(c);
                }
                self.put(c);
                self.indention = false;
                spaces = false;
                breaks = false;
            }
        }
    }

    fn write_double_quoted(&mut self, text: &str, may_break: bool, indent: usize) {
        self.write_indicator("\"", true, false, false);
        let mut spaces = false;
        for (at, c) in text.char_indices() {
            if !is_printable(c) || is_break(c) || matches!(c, '"' | '\\') {
                self.write_escape(c);
                spaces = false;
            } else if c == ' ' {
                if may_break && !spaces && self.column > WIDTH && at > 0 && at < text.len() - 1 {
                    self.write_indent(indent);
                    if text.get(at + 1..).is_some_and(|rest| rest.starts_with(' ')) {
                        self.put('\\');
                    }
                } else {
                    self.put(c);
                }
                spaces = true;
            } else {
                self.put(c);
                spaces = false;
            }
        }
        self.write_indicator("\"", false, false, false);
        self.whitespace = false;
        self.indention = false;
    }

    fn write_escape(&mut self, c: char) {
        let short = match c {
            '\0' => '0',
            '\x07' => 'a',
            '\x08' => 'b',
            '\t' => 't',
            '\n' => 'n',
            '\x0b' => 'v',
            '\x0c' => 'f',
            '\r' => 'r',
            '\x1b' => 'e',
            '"' | '\\' => c,
            '\u{85}' => 'N',
            '\u{a0}' => '_',
            '\u{2028}' => 'L',
            '\u{2029}' => 'P',
            _ => {
                let code = c as u32;
                let text = match code {
                    0..=0xff => format!("\\x{code:02X}"),
                    0x100..=0xffff => format!("\\u{code:04X}"),
                    _ => format!("\\U{code:08X}"),
                };
                text.chars().for_each(|c| self.put(c));
                return;
            }
        };
        self.put('\\');
        self.put(short);
    }

    fn write_literal(&mut self, text: &str, indent: usize) {
        self.write_indicator("|", true, false, false);
        if text.starts_with(|c| c == ' ' || is_break(c)) {
            self.write_indicator("2", false, false, false);
        }
        let mut from_end = text.chars().rev();
        let chomping = match (from_end.next(), from_end.next()) {
            (Some(last), before) if is_break(last) => {
                if before.is_none_or(is_break) {
                    "+"
                } else {
                    ""
                }
            }
            _ => "-",
        };
        if !chomping.is_empty() {
            self.write_indicator(chomping, false, false, false);
        }
        self.put_break();
        self.indention = true;
        self.whitespace = true;
        let mut breaks = true;
        for c in text.chars() {
            if is_break(c) {
                self.write_break(c);
                self.indention = true;
                breaks = true;
            } else {
                if breaks {
                    self.write_indent(indent);
                }
                self.put(c);
                self.indention = false;
                breaks = false;
            }
        }
    }
}

/// The style that the encoder prefers; the content of the text may force another one.
/// Go's form of a float. It is JSON before, where the whole numbers that fit 64 bits are read as integers.
fn format_float(float: f64) -> String {
    let is_integer =
        float.fract() == 0.0 && (-9.223_372_036_854_776e18..1.844_674_407_370_955_2e19).contains(&float);
    match is_integer {
        // A negative zero has no sign.
        true => (float + 0.0).to_string(),
        false => format_g(float),
    }
}

fn preferred_style(text: &str) -> Style {
    if text.contains('\n') {
        return Style::Literal;
    }
    // Text that would be parsed as another type is quoted.
    let is_text = matches!(resolve(text), Resolved::Text | Resolved::Merge);
    if is_text && !is_base60(text) { Style::Plain } else { Style::DoubleQuoted }
}

/// Whether the text is a number in base 60, such as `1:30`, which other YAML 1.1 parsers read as a number.
fn is_base60(text: &str) -> bool {
    let rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (whole, fraction) = rest.split_once('.').unwrap_or((rest, ""));
    let mut parts = whole.split(':');
    let first = parts.next().unwrap_or_default();
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
    let mut sixties = parts.peekable();
    first.starts_with(|c: char| c.is_ascii_digit())
        && digits(first)
        && digits(fraction)
        && sixties.peek().is_some()
        && sixties.all(|part| match part.as_bytes() {
            [digit] => digit.is_ascii_digit(),
            [ten, digit] => (b'0'..=b'5').contains(ten) && digit.is_ascii_digit(),
            _ => false,
        })
}

/// The styles that a text allows.
struct Analysis {
    plain: bool,
    single_quoted: bool,
    block: bool,
    multiline: bool,
}

impl Analysis {
    fn of(text: &str) -> Self {
        if text.is_empty() {
            return Self { plain: true, single_quoted: true, block: false, multiline: false };
        }
        let mut indicators = text.starts_with("---") || text.starts_with("...");
        let (mut breaks, mut special) = (false, false);
        let (mut break_space, mut space_break) = (false, false);
        let (mut after_space, mut after_break) = (false, false);
        let mut after_white = true;
        for (at, c) in text.char_indices() {
            let next = text.get(at + c.len_utf8()..).and_then(|rest| rest.chars().next());
            let before_white = next.is_none_or(|next| matches!(next, ' ' | '\t'));
            indicators |= match c {
                '#' => after_white,
                ':' => before_white,
                '?' | '-' if at == 0 => before_white,
                ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@' | '`' => {
                    at == 0
                }
                _ => false,
            };
            special |= !is_printable(c);
            if c == ' ' {
                break_space |= after_break;
                (after_space, after_break) = (true, false);
            } else if is_break(c) {
                breaks = true;
                space_break |= after_space;
                (after_space, after_break) = (false, true);
            } else {
                (after_space, after_break) = (false, false);
            }
            after_white = matches!(c, ' ' | '\t' | '\0') || is_break(c);
        }
        let edge = |c: char| c == ' ' || is_break(c);
        let ragged = text.starts_with(edge) || text.ends_with(edge);
        let unquotable = space_break || special;
        Self {
            plain: !(indicators || ragged || break_space || unquotable || breaks),
            single_quoted: !(break_space || unquotable),
            block: !(text.ends_with(' ') || unquotable),
            multiline: breaks,
        }
    }

    fn style(&self, wanted: Style, text: &str, simple_key: bool) -> Style {
        let mut style = wanted;
        if simple_key && self.multiline {
            style = Style::DoubleQuoted;
        }
        if style == Style::Plain && (!self.plain || (text.is_empty() && simple_key)) {
            style = Style::SingleQuoted;
        }
        if style == Style::SingleQuoted && !self.single_quoted {
            style = Style::DoubleQuoted;
        }
        if style == Style::Literal && (!self.block || simple_key) {
            style = Style::DoubleQuoted;
        }
        style
    }
}

fn is_break(c: char) -> bool {
    matches!(c, '\r' | '\n' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Whether YAML writes the character unescaped. Characters beyond the basic plane and tabs do not count as printable.
fn is_printable(c: char) -> bool {
    matches!(c, '\n' | ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}') && c != '\u{feff}'
}

/// Sorts the members by [`natural_order`]. The order is not transitive for some keys (`l2p`, `l3`, `l21`), on which the
/// sort of the standard library may panic; this merge sort does not.
fn in_natural_order(object: &Map) -> Vec<(&Text, &Value)> {
    let mut entries: Vec<(&Text, &Value)> = object.iter().collect();
    let mut sorted = 1;
    while sorted < entries.len() {
        let mut merged = Vec::with_capacity(entries.len());
        for pair in entries.chunks(2 * sorted) {
            let (left, right) = pair.split_at(sorted.min(pair.len()));
            let (mut left, mut right) = (left.iter().peekable(), right.iter().peekable());
            while let (Some((one, _)), Some((other, _))) = (left.peek(), right.peek()) {
                let is_less = natural_order(other, one) == Ordering::Less;
                merged.extend(if is_less { right.next() } else { left.next() });
            }
            merged.extend(left.chain(right));
        }
        entries = merged;
        sorted *= 2;
    }
    entries
}

/// Compares keys: letters come after other characters, digit sequences compare as numbers.
fn natural_order(a: &str, b: &str) -> Ordering {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let Some(at) = a.iter().zip(&b).position(|(a, b)| a != b) else { return a.len().cmp(&b.len()) };
    let (Some(&left), Some(&right)) = (a.get(at), b.get(at)) else { return a.len().cmp(&b.len()) };
    match (left.is_alphabetic(), right.is_alphabetic()) {
        (true, true) => return left.cmp(&right),
        (true, false) => return Ordering::Greater,
        (false, true) => return Ordering::Less,
        (false, false) => {}
    }
    // A zero inside a number is an ordinary digit, a leading zero is not.
    let head = a.get(..at).unwrap_or_default();
    let mut before = head.iter().rev().take_while(|c| c.is_numeric());
    let inside = (left == '0' || right == '0') && before.any(|&c| c != '0');
    let number = |chars: &[char]| {
        let digits = chars.get(at..).unwrap_or_default().iter().map_while(|c| c.to_digit(10));
        let (mut value, mut len) = (i64::from(inside), 0usize);
        for digit in digits {
            value = value.wrapping_mul(10).wrapping_add(i64::from(digit));
            len += 1;
        }
        (value, len)
    };
    number(&a).cmp(&number(&b)).then_with(|| left.cmp(&right))
}
