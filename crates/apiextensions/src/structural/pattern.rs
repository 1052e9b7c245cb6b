//! Regular expressions of schemas, compiled when first needed.

use std::sync::OnceLock;

use pintle_cel::pattern;

/// A pattern in Go's syntax and, once it has been needed, what became of it.
///
/// Matching takes time linear in the text, whatever the pattern, and a pattern whose compiled form is too large is refused.
#[derive(Debug)]
pub struct Pattern {
    source: Box<str>,
    compiled: OnceLock<Result<pattern::Pattern, String>>,
}

impl Pattern {
    /// A pattern. Whether it is one shows when it is first used.
    pub fn new(source: &str) -> Pattern {
        Pattern { source: source.into(), compiled: OnceLock::new() }
    }

    /// As it was given.
    pub fn source(&self) -> &str {
        &self.source
    }

    fn compiled(&self) -> &Result<pattern::Pattern, String> {
        self.compiled.get_or_init(|| pattern::compile(&self.source))
    }

    /// How long matching a text takes at most, in checks of small values.
    pub(super) fn effort(&self, text: &str) -> usize {
        let effort = self.compiled().as_ref().map_or(0, |pattern| pattern.effort(text.len()));
        usize::try_from(effort).unwrap_or(usize::MAX)
    }

    /// Whether the text has a match somewhere. The error says why the pattern cannot be used.
    pub fn is_match(&self, text: &str) -> Result<bool, &str> {
        self.compiled().as_ref().map(|pattern| pattern.is_match(text)).map_err(String::as_str)
    }
}
