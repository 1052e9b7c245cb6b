//! Regular expressions of schemas, compiled on first use.

use std::sync::OnceLock;

use pintle_cel::pattern;

/// A pattern in Go's syntax and its compiled form or error.
///
/// Matching takes time linear in the text for every pattern, and a pattern whose compiled form is too large is
/// rejected.
#[derive(Debug)]
pub struct Pattern {
    source: Box<str>,
    compiled: OnceLock<Result<pattern::Pattern, String>>,
}

impl Pattern {
    /// Creates a pattern. Errors of its syntax appear on first use.
    pub fn new(source: &str) -> Pattern {
        Pattern { source: source.into(), compiled: OnceLock::new() }
    }

    /// The source text.
    pub fn source(&self) -> &str {
        &self.source
    }

    fn compiled(&self) -> &Result<pattern::Pattern, String> {
        self.compiled.get_or_init(|| pattern::compile(&self.source))
    }

    /// The maximum cost of matching a text, in checks of small values.
    pub(super) fn effort(&self, text: &str) -> usize {
        let effort = self.compiled().as_ref().map_or(0, |pattern| pattern.effort(text));
        usize::try_from(effort).unwrap_or(usize::MAX)
    }

    /// Whether the text contains a match.
    ///
    /// # Errors
    /// The reason why the pattern is unusable.
    pub fn is_match(&self, text: &str) -> Result<bool, &str> {
        self.compiled().as_ref().map(|pattern| pattern.is_match(text)).map_err(String::as_str)
    }
}
