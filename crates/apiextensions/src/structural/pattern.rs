//! Regular expressions of schemas, compiled when first needed.

use std::sync::OnceLock;

use regex::Regex;

/// A pattern in Go's syntax and, once it has been needed, what became of it.
///
/// Matching takes time linear in the text, whatever the pattern, and a pattern whose compiled form is too large is refused.
#[derive(Debug)]
pub struct Pattern {
    source: Box<str>,
    compiled: OnceLock<Result<Regex, String>>,
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

    /// Whether the text has a match somewhere. The error says why the pattern cannot be used.
    pub fn is_match(&self, text: &str) -> Result<bool, &str> {
        match self.compiled.get_or_init(|| pintle_cel::pattern::compile(&self.source)) {
            Ok(regex) => Ok(regex.is_match(text)),
            Err(error) => Err(error),
        }
    }
}
