//! Lines of comma-separated values, as Go's `encoding/csv` reads them.

use std::fmt;

/// The error of a malformed record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CsvError {
    /// There is no record.
    EndOfFile,
    /// A quote is out of place.
    Quote {
        /// The line in which the record starts, counted from 1.
        start_line: usize,
        /// The line of the quote.
        line: usize,
        /// The column of the quote in bytes, counted from 1.
        column: usize,
        /// Whether the field does not start with a quote.
        is_bare: bool,
    },
}

impl fmt::Display for CsvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CsvError::EndOfFile => f.write_str("EOF"),
            CsvError::Quote { start_line, line, column, is_bare } => {
                if start_line != line {
                    write!(f, "record on line {start_line}; ")?;
                }
                let problem = match is_bare {
                    true => "bare \" in non-quoted-field",
                    false => "extraneous or missing \" in quoted-field",
                };
                write!(f, "parse error on line {line}, column {column}: {problem}")
            }
        }
    }
}

impl std::error::Error for CsvError {}

/// Reads records one after the other. Empty lines are skipped; records may have any number of fields.
#[derive(Debug)]
pub struct CsvReader<'a> {
    /// The unread text.
    rest: &'a str,
    /// The number of lines read.
    line: usize,
}

impl<'a> CsvReader<'a> {
    /// Reads a text.
    pub fn new(text: &'a str) -> CsvReader<'a> {
        CsvReader { rest: text, line: 0 }
    }

    /// The next record.
    ///
    /// # Errors
    /// When there is none, or a quote is out of place.
    pub fn record(&mut self) -> Result<Vec<String>, CsvError> {
        let mut line = loop {
            match self.next_line() {
                None => return Err(CsvError::EndOfFile),
                Some(line) if line.text.is_empty() => {}
                Some(line) => break line,
            }
        };
        let start_line = self.line;
        let mut fields = Vec::new();
        loop {
            let Some(behind) = line.text.strip_prefix('"') else {
                let (field, rest) = match line.text.split_once(',') {
                    Some((field, rest)) => (field, Some(rest)),
                    None => (line.text, None),
                };
                if let Some(quote) = field.find('"') {
                    let column = line.column + quote;
                    return Err(CsvError::Quote { start_line, line: self.line, column, is_bare: true });
                }
                fields.push(field.to_owned());
                match rest {
                    Some(rest) => line.advance(field.len() + 1, rest),
                    None => return Ok(fields),
                }
                continue;
            };
            line.advance(1, behind);
            let (field, is_last) = self.quoted(&mut line, start_line)?;
            fields.push(field);
            if is_last {
                return Ok(fields);
            }
        }
    }

    /// The rest of a field behind its first quote, and whether it ends the record.
    fn quoted(&mut self, line: &mut Line<'a>, start_line: usize) -> Result<(String, bool), CsvError> {
        let mut field = String::new();
        loop {
            let Some((before, behind)) = line.text.split_once('"') else {
                field.push_str(line.text);
                line.advance(line.text.len(), "");
                if line.has_end {
                    field.push('\n');
                    line.column += 1;
                    if let Some(next) = self.next_line() {
                        *line = next;
                        continue;
                    }
                }
                let column = line.column;
                return Err(CsvError::Quote { start_line, line: self.line, column, is_bare: false });
            };
            field.push_str(before);
            line.advance(before.len() + 1, behind);
            if let Some(behind) = line.text.strip_prefix('"') {
                field.push('"');
                line.advance(1, behind);
            } else if let Some(behind) = line.text.strip_prefix(',') {
                line.advance(1, behind);
                return Ok((field, false));
            } else if line.text.is_empty() {
                return Ok((field, true));
            } else {
                let column = line.column - 1;
                return Err(CsvError::Quote { start_line, line: self.line, column, is_bare: false });
            }
        }
    }

    fn next_line(&mut self) -> Option<Line<'a>> {
        if self.rest.is_empty() {
            return None;
        }
        self.line += 1;
        let (text, rest) = match self.rest.split_once('\n') {
            Some((text, rest)) => (text, Some(rest)),
            None => (self.rest, None),
        };
        self.rest = rest.unwrap_or_default();
        Some(Line { text: text.strip_suffix('\r').unwrap_or(text), column: 1, has_end: rest.is_some() })
    }
}

/// The unread part of a line.
#[derive(Debug)]
struct Line<'a> {
    text: &'a str,
    /// Its first byte, counted from 1.
    column: usize,
    /// Whether the line ends with a line feed.
    has_end: bool,
}

impl<'a> Line<'a> {
    fn advance(&mut self, bytes: usize, rest: &'a str) {
        (self.column, self.text) = (self.column + bytes, rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_may_be_quoted() {
        let check = |text: &str, expected: &[&str]| {
            assert_eq!(CsvReader::new(text).record().unwrap(), expected, "{text}");
        };
        check("a,b", &["a", "b"]);
        check("\"a,b\",c", &["a,b", "c"]);
        check("\"a\"\"b\"", &["a\"b"]);
        check("a,,b,", &["a", "", "b", ""]);
        check(",", &["", ""]);
        check(" a", &[" a"]);
        check("\n\r\na\r\nb", &["a"]);
        check("\"a\r\nb\",c\nd", &["a\nb", "c"]);
        let mut reader = CsvReader::new("a,b\n\nc\n");
        assert_eq!(reader.record().unwrap(), ["a", "b"]);
        assert_eq!(reader.record().unwrap(), ["c"]);
        assert_eq!(reader.record().unwrap_err(), CsvError::EndOfFile);
    }

    #[test]
    fn misplaced_quotes_are_errors() {
        let check = |text: &str, expected: &str| {
            assert_eq!(CsvReader::new(text).record().unwrap_err().to_string(), expected, "{text}");
        };
        check("", "EOF");
        check("\n", "EOF");
        check("a\"b", "parse error on line 1, column 2: bare \" in non-quoted-field");
        check("x,a\"b", "parse error on line 1, column 4: bare \" in non-quoted-field");
        check("\"a", "parse error on line 1, column 3: extraneous or missing \" in quoted-field");
        check("\"a\"b", "parse error on line 1, column 3: extraneous or missing \" in quoted-field");
        check(
            "\"a\nb",
            "record on line 1; parse error on line 2, column 2: extraneous or missing \" in quoted-field",
        );
    }
}
