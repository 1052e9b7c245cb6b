//! The source text of an expression.

use crate::compile_error::CompileErrors;
use crate::issue::{Issue, Location};

/// The source text with its line breaks.
#[derive(Debug)]
pub(crate) struct Source<'a> {
    text: &'a str,
    /// The offsets, in code points, of the second and later lines.
    line_offsets: Vec<u32>,
    /// The length in code points.
    pub(crate) length: usize,
}

/// Longer lines, in code points, are not shown with an error.
const MAX_SNIPPET_LENGTH: usize = 16_384;

impl<'a> Source<'a> {
    pub(crate) fn new(text: &'a str) -> Source<'a> {
        let mut line_offsets = Vec::new();
        let mut length = 0;
        for character in text.chars() {
            length += 1;
            if character == '\n' {
                line_offsets.push(u32::try_from(length).unwrap_or(u32::MAX));
            }
        }
        Source { text, line_offsets, length }
    }

    pub(crate) fn text(&self) -> &'a str {
        self.text
    }

    /// The position of an offset in code points. Offsets beyond the end are on the last line.
    pub(crate) fn location(&self, offset: u32) -> Location {
        // The reference has no first column in an empty text.
        if self.text.is_empty() {
            return Location { line: 1, column: -1 };
        }
        let line = self.line_offsets.partition_point(|start| *start <= offset);
        let start =
            line.checked_sub(1).and_then(|before| self.line_offsets.get(before)).copied().unwrap_or(0);
        Location { line: line as i64 + 1, column: i64::from(offset - start) }
    }

    /// Formats the errors for clients: each with its line and a mark below the position, in order of position.
    pub(crate) fn report(&self, mut issues: Vec<Issue>) -> CompileErrors {
        // Further errors are only counted.
        const MAX_REPORTED: usize = 100;
        let reported = issues.len().min(MAX_REPORTED);
        let truncated = issues.len() - reported;
        issues.truncate(reported);
        issues.sort_by_key(|issue| issue.location);
        let mut text = issues.iter().map(|issue| self.display(issue)).collect::<Vec<_>>();
        if truncated > 0 {
            text.push(format!("{truncated} more errors were truncated"));
        }
        CompileErrors::new(text.join("\n"), issues.into_iter().map(|issue| issue.message).collect())
    }

    fn display(&self, issue: &Issue) -> String {
        let Location { line, column } = issue.location;
        let mut text = format!("ERROR: <input>:{line}:{}: {}", column + 1, issue.message);
        let snippet = usize::try_from(line - 1).ok().and_then(|line| self.text.split('\n').nth(line));
        if let Some(snippet) =
            snippet.filter(|snippet| !self.text.is_empty() && snippet.len() <= MAX_SNIPPET_LENGTH)
        {
            let snippet = snippet.replace('\t', " ");
            let mut rest = snippet.chars();
            let before = rest.by_ref().take(usize::try_from(column).unwrap_or(0));
            let dots: String =
                before.map(|character| if character.len_utf8() > 1 { '\u{ff0e}' } else { '.' }).collect();
            let mark =
                if rest.next().is_some_and(|character| character.len_utf8() > 1) { '\u{ff3e}' } else { '^' };
            text.push_str(&format!("\n | {snippet}\n | {dots}{mark}"));
        }
        text
    }
}
