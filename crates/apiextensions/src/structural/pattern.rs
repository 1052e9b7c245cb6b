//! Regular expressions of schemas, compiled when first needed.

use std::sync::OnceLock;

use regex::{Regex, RegexBuilder};

/// Bytes that a compiled pattern may take. A client writes patterns, and repetitions of repetitions are large.
const MAX_SIZE: usize = 1 << 20;

/// A pattern and, once it has been needed, what became of it.
///
/// Matching takes time linear in the text, whatever the pattern.
#[derive(Debug)]
pub struct Pattern {
    source: Box<str>,
    compiled: OnceLock<Result<Regex, String>>,
}

impl Pattern {
    /// A pattern in Go's syntax. Whether it is one shows when it is first used.
    pub fn new(source: &str) -> Pattern {
        Pattern { source: source.into(), compiled: OnceLock::new() }
    }

    /// As it was given.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Whether the text has a match somewhere. The error says why the pattern cannot be used.
    pub fn is_match(&self, text: &str) -> Result<bool, &str> {
        match self.compiled.get_or_init(|| compile(&self.source)) {
            Ok(regex) => Ok(regex.is_match(text)),
            Err(error) => Err(error),
        }
    }
}

fn compile(source: &str) -> Result<Regex, String> {
    RegexBuilder::new(source).size_limit(MAX_SIZE).build().map_err(|error| error.to_string())
}
