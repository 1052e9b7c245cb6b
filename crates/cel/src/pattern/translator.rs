//! Translates a pattern of Go's syntax to that of the `regex` crate, and refuses what Go refuses.

use super::unicode_class::UnicodeClass;

/// The largest repetition count.
const MAX_REPEAT: u32 = 1000;
/// The maximum nesting depth of groups.
const MAX_DEPTH: usize = 250;
/// The maximum number of ranges of the Unicode classes of a pattern. A parsed pattern has a copy of a class for each
/// place where it is written.
const MAX_RANGES: usize = 500_000;

/// An error message, and the faulty part.
pub(super) struct Problem<'a>(pub(super) &'static str, pub(super) &'a str);

/// Reads a pattern by Go's rules and writes it for the `regex` crate.
pub(super) struct Translator<'a> {
    pattern: &'a str,
    rest: &'a str,
    out: String,
    /// The number of open groups.
    depth: usize,
    /// Whether the previous part can be repeated.
    repeatable: bool,
    /// The operator that repeats the previous part.
    repeated: Option<&'a str>,
    /// The largest repetition within the previous part.
    times: u32,
    /// The largest repetition in the parts before it, in the pattern and in each open group.
    most: Vec<u32>,
    /// The Unicode classes by their written names.
    classes: Vec<(&'a str, UnicodeClass)>,
    /// The number of ranges of all Unicode classes.
    ranges: usize,
}

impl<'a> Translator<'a> {
    pub(super) fn new(pattern: &'a str) -> Translator<'a> {
        let out = String::with_capacity(pattern.len() + 16);
        Translator {
            pattern,
            rest: pattern,
            out,
            depth: 0,
            repeatable: false,
            repeated: None,
            times: 1,
            most: vec![1],
            classes: Vec::new(),
            ranges: 0,
        }
    }

    /// The translated pattern, and the number of ranges of its Unicode classes.
    pub(super) fn translate(mut self) -> Result<(String, usize), Problem<'a>> {
        while let Some(c) = self.rest.chars().next() {
            let before = self.rest;
            match c {
                '(' => {
                    self.open()?;
                    (self.repeatable, self.repeated) = (false, None);
                    continue;
                }
                '|' => {
                    self.take(1);
                    self.out.push('|');
                    (self.repeatable, self.repeated) = (false, None);
                    continue;
                }
                ')' => {
                    if self.depth == 0 {
                        return Err(Problem("unexpected )", self.pattern));
                    }
                    self.depth -= 1;
                    self.take(1);
                    self.out.push(')');
                    self.settle();
                    self.times = self.most.pop().unwrap_or(1);
                    (self.repeatable, self.repeated) = (true, None);
                    continue;
                }
                '*' | '+' | '?' => {
                    self.take(1);
                    self.repeat(before, &c.to_string(), Some(1))?;
                    continue;
                }
                '{' => match repetition(self.rest) {
                    Some((len, min, max)) => {
                        let operator = self.take(len);
                        if min > MAX_REPEAT || max.is_some_and(|max| max > MAX_REPEAT || max < min) {
                            return Err(Problem("invalid repeat count", operator));
                        }
                        let times = Some(max.unwrap_or(min.max(1))).filter(|times| *times > 0);
                        self.repeat(before, operator, times)?;
                        continue;
                    }
                    None => self.literal(),
                },
                '[' => self.class()?,
                '\\' => self.escape()?,
                '.' | '^' | '$' => {
                    self.take(1);
                    self.out.push(c);
                }
                _ => self.literal(),
            }
            self.settle();
            self.times = 1;
            (self.repeatable, self.repeated) = (true, None);
        }
        if self.depth > 0 {
            return Err(Problem("missing closing )", self.pattern));
        }
        Ok((self.out, self.ranges))
    }

    /// Consumes this number of bytes.
    fn take(&mut self, len: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at_checked(len).unwrap_or((self.rest, ""));
        self.rest = rest;
        taken
    }

    /// Records the repetitions within the previous part: no operator behind it follows.
    fn settle(&mut self) {
        if let Some(most) = self.most.last_mut() {
            *most = (*most).max(self.times);
        }
    }

    fn literal(&mut self) {
        let len = self.rest.chars().next().map_or(0, char::len_utf8);
        let text = self.take(len);
        self.out.push_str(&regex::escape(text));
    }

    /// Translates a repetition whose operator is consumed; `before` is the text from the operator on. `times` is `None`
    /// for `{0}`.
    fn repeat(&mut self, before: &'a str, operator: &str, times: Option<u32>) -> Result<(), Problem<'a>> {
        let lazy = self.rest.starts_with('?');
        if lazy {
            self.take(1);
        }
        let len = before.len() - self.rest.len();
        let written = before.get(..len).unwrap_or(before);
        if let Some(first) = self.repeated {
            // The message shows both operators.
            let start = self.pattern.len() - before.len() - first.len();
            let both = self.pattern.get(start..start + first.len() + len).unwrap_or(written);
            return Err(Problem("invalid nested repetition operator", both));
        }
        if !self.repeatable {
            return Err(Problem("missing argument to repetition operator", written));
        }
        // Nested repetitions together must not exceed the maximum.
        let together = times.map_or(1, |times| times.saturating_mul(self.times));
        if times >= Some(2) && together > MAX_REPEAT {
            return Err(Problem("invalid repeat count", written));
        }
        self.times = together;
        self.out.push_str(operator);
        if lazy {
            self.out.push('?');
        }
        self.repeated = Some(written);
        Ok(())
    }

    fn open(&mut self) -> Result<(), Problem<'a>> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Problem("expression nests too deeply", self.pattern));
        }
        let start = self.rest;
        self.settle();
        self.most.push(1);
        self.times = 1;
        let Some(after) = start.strip_prefix("(?") else {
            self.take(1);
            self.out.push('(');
            return Ok(());
        };
        if let Some(name) = after.strip_prefix("P<").or_else(|| after.strip_prefix('<')) {
            let Some(end) = name.find('>') else { return Err(Problem("invalid named capture", start)) };
            let name = name.get(..end).unwrap_or_default();
            let len = start.find('>').map_or(start.len(), |end| end + 1);
            let capture = self.take(len);
            if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
                return Err(Problem("invalid named capture", capture));
            }
            // Group names are unused, and the `regex` crate rejects names that begin with a digit.
            self.out.push('(');
            return Ok(());
        }
        // Flags, for the rest or for a group of their own.
        let mut negated = false;
        let mut flagged = false;
        for (position, c) in after.char_indices() {
            let upto = |len: usize| start.get(..2 + position + len).unwrap_or(start);
            match c {
                'i' | 'm' | 's' | 'U' => flagged = true,
                '-' if !negated => (negated, flagged) = (true, false),
                ':' | ')' if !negated || flagged => {
                    let group = self.take(2 + position + 1);
                    // `(?)` sets no flag.
                    self.out.push_str(if group == "(?)" { "(?:)" } else { group });
                    if c == ')' {
                        self.depth -= 1;
                        self.most.pop();
                    }
                    return Ok(());
                }
                c => return Err(Problem("invalid or unsupported Perl syntax", upto(c.len_utf8()))),
            }
        }
        Err(Problem("invalid or unsupported Perl syntax", start))
    }

    /// An escape outside a class.
    fn escape(&mut self) -> Result<(), Problem<'a>> {
        let after = self.rest.get(1..).unwrap_or_default();
        let Some(c) = after.chars().next() else {
            return Err(Problem("trailing backslash at end of expression", ""));
        };
        match c {
            'A' | 'z' => {
                let anchor = self.take(2);
                self.out.push_str(anchor);
            }
            'b' | 'B' => {
                let boundary = self.take(2);
                self.out.push_str("(?-u:");
                self.out.push_str(boundary);
                self.out.push(')');
            }
            'Q' => {
                self.take(2);
                let end = self.rest.find("\\E");
                let quoted = self.take(end.unwrap_or(self.rest.len()));
                if end.is_some() {
                    self.take(2);
                }
                self.out.push_str(&regex::escape(quoted));
                if quoted.is_empty() {
                    self.out.push_str("(?:)");
                }
            }
            _ => match self.perl_or_unicode_class()? {
                Some(class) => {
                    self.out.push('[');
                    self.out.push_str(&class);
                    self.out.push(']');
                }
                None => {
                    let c = self.escaped_char()?;
                    self.out.push_str(&code(c));
                }
            },
        }
        Ok(())
    }

    /// The content of a class for `\d`, `\pL` and similar escapes.
    fn perl_or_unicode_class(&mut self) -> Result<Option<String>, Problem<'a>> {
        let start = self.rest;
        let Some(c) = start.strip_prefix('\\').and_then(|after| after.chars().next()) else {
            return Ok(None);
        };
        let class = match c {
            'd' => "0-9",
            'D' => "[^0-9]",
            's' => "\\t\\n\\x0C\\r ",
            'S' => "[^\\t\\n\\x0C\\r ]",
            'w' => "0-9A-Za-z_",
            'W' => "[^0-9A-Za-z_]",
            'p' | 'P' => {
                let name = start.get(2..).unwrap_or_default();
                let (name, len) = match name.strip_prefix('{') {
                    Some(name) => {
                        let Some(end) = name.find('}') else {
                            return Err(Problem("invalid character class range", start));
                        };
                        (name.get(..end).unwrap_or_default(), end + 4)
                    }
                    None => {
                        let len = name.chars().next().map_or(0, char::len_utf8);
                        (name.get(..len).unwrap_or_default(), len + 2)
                    }
                };
                let written = self.take(len);
                let (name, negated) = match name.strip_prefix('^') {
                    Some(name) => (name, c == 'p'),
                    None => (name, c == 'P'),
                };
                let Some((class, ranges)) = self.unicode_class(name, negated) else {
                    return Err(Problem("invalid character class range", written));
                };
                self.ranges += ranges;
                if self.ranges > MAX_RANGES {
                    return Err(Problem("expression too large", self.pattern));
                }
                return Ok(Some(class));
            }
            _ => return Ok(None),
        };
        self.take(2);
        Ok(Some(class.to_owned()))
    }

    /// The translation of a Unicode class, and the number of its ranges; `None` if there is none of this name.
    fn unicode_class(&mut self, name: &'a str, negated: bool) -> Option<(String, usize)> {
        let known = self.classes.iter().find(|(known, _)| *known == name);
        let class = match known {
            Some((_, class)) => class.clone(),
            None => {
                let class = UnicodeClass::named(name)?;
                self.classes.push((name, class.clone()));
                class
            }
        };
        Some((class.translated(negated), class.ranges))
    }

    /// An escape for one character.
    fn escaped_char(&mut self) -> Result<char, Problem<'a>> {
        let start = self.rest;
        let after = start.get(1..).unwrap_or_default();
        let Some(c) = after.chars().next() else {
            return Err(Problem("trailing backslash at end of expression", ""));
        };
        let invalid = |len: usize| {
            let end = (0..=4).find_map(|extra| start.get(..len + extra)).unwrap_or(start);
            Problem("invalid escape sequence", end)
        };
        let is_octal = |byte: &u8| (b'0'..=b'7').contains(byte);
        let simple = match c {
            'a' => '\u{7}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            '0'..='7' => {
                let digits = after.bytes().take(3).take_while(is_octal).count();
                // A single digit other than 0 would be a backreference.
                if c != '0' && digits < 2 {
                    return Err(invalid(2));
                }
                let value = u32::from_str_radix(after.get(..digits).unwrap_or_default(), 8).unwrap_or(0);
                self.take(1 + digits);
                return char::from_u32(value).ok_or(invalid(1 + digits));
            }
            'x' => return self.hexadecimal_char(),
            c if c.is_ascii() && !c.is_ascii_alphanumeric() => c,
            c => return Err(invalid(1 + c.len_utf8())),
        };
        self.take(2);
        Ok(simple)
    }

    /// `\x4F` or `\x{1F600}`.
    fn hexadecimal_char(&mut self) -> Result<char, Problem<'a>> {
        let start = self.rest;
        self.take(2);
        let braced = self.rest.starts_with('{');
        let mut value = 0;
        let mut digits = 0;
        if braced {
            self.take(1);
        }
        let problem = |rest: &str| {
            let read = start.get(..start.len() - rest.len()).unwrap_or(start);
            Problem("invalid escape sequence", read)
        };
        while braced || digits < 2 {
            let Some(c) = self.rest.chars().next() else { return Err(problem("")) };
            self.take(c.len_utf8());
            match c.to_digit(16) {
                _ if braced && c == '}' => break,
                Some(digit) => value = value * 16 + digit,
                // Without braces, two characters are always consumed.
                None if !braced && digits == 0 => {
                    let len = self.rest.chars().next().map_or(0, char::len_utf8);
                    self.take(len);
                    return Err(problem(self.rest));
                }
                None => return Err(problem(self.rest)),
            }
            digits += 1;
            if value > u32::from(char::MAX) {
                return Err(problem(self.rest));
            }
        }
        match char::from_u32(value) {
            Some(c) if digits > 0 => Ok(c),
            _ => Err(problem(self.rest)),
        }
    }

    fn class(&mut self) -> Result<(), Problem<'a>> {
        let start = self.rest;
        self.take(1);
        self.out.push('[');
        if self.rest.starts_with('^') {
            self.take(1);
            self.out.push('^');
        }
        let mut first = true;
        loop {
            if self.rest.is_empty() {
                return Err(Problem("missing closing ]", start));
            }
            if self.rest.starts_with(']') && !first {
                self.take(1);
                self.out.push(']');
                return Ok(());
            }
            first = false;
            if self.rest.starts_with("[:")
                && let Some(end) = self.rest.find(":]")
            {
                const NAMES: [&str; 14] = [
                    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct",
                    "space", "upper", "word", "xdigit",
                ];
                let written = self.take(end + 2);
                let name = written.trim_matches(['[', ':', ']']);
                if !NAMES.contains(&name.strip_prefix('^').unwrap_or(name)) {
                    return Err(Problem("invalid character class range", written));
                }
                self.out.push_str(written);
                continue;
            }
            if let Some(class) = self.perl_or_unicode_class()? {
                self.out.push_str(&class);
                continue;
            }
            let range = self.rest;
            let low = self.class_char(start)?;
            let mut high = low;
            // A hyphen before the closing bracket is a literal.
            if self.rest.starts_with('-') && !self.rest.starts_with("-]") && self.rest.len() > 1 {
                self.take(1);
                high = self.class_char(start)?;
                if high < low {
                    let len = range.len() - self.rest.len();
                    return Err(Problem("invalid character class range", range.get(..len).unwrap_or(range)));
                }
            }
            self.out.push_str(&code(low));
            if high != low {
                self.out.push('-');
                self.out.push_str(&code(high));
            }
        }
    }

    fn class_char(&mut self, class: &'a str) -> Result<char, Problem<'a>> {
        match self.rest.chars().next() {
            None => Err(Problem("missing closing ]", class)),
            Some('\\') => self.escaped_char(),
            Some(c) => {
                self.take(c.len_utf8());
                Ok(c)
            }
        }
    }
}

/// Escapes a character, so that it has no special meaning.
fn code(c: char) -> String {
    if c.is_ascii_alphanumeric() { c.to_string() } else { format!("\\x{{{:X}}}", u32::from(c)) }
}

/// The length and counts of `{2}`, `{2,}` or `{2,3}`; other braces are literals.
fn repetition(text: &str) -> Option<(usize, u32, Option<u32>)> {
    let inside = text.strip_prefix('{')?;
    let end = inside.find('}')?;
    let counts = inside.get(..end)?;
    let (min, max) = match counts.split_once(',') {
        Some((min, "")) => (min, None),
        Some((min, max)) => (min, Some(max)),
        None => (counts, Some(counts)),
    };
    let number = |digits: &str| {
        let decimal = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let canonical = digits.len() == 1 || !digits.starts_with('0');
        // A number that overflows is too large in any case.
        (decimal && canonical).then(|| digits.parse().unwrap_or(u32::MAX))
    };
    let min = number(min)?;
    let max = match max {
        Some(max) => Some(number(max)?),
        None => None,
    };
    Some((end + 2, min, max))
}
