//! Why an expression is refused.

use crate::source::Location;
use std::fmt;

/// Something wrong at a place.
#[derive(Clone, Debug)]
pub(crate) struct Issue {
    pub(crate) location: Location,
    pub(crate) message: String,
}

/// Everything that is wrong with an expression.
///
/// Displayed as clients see it, for each error a message, the line of source and a mark under the place:
///
/// ```text
/// ERROR: <input>:1:1: undeclared reference to 'foo' (in container '')
///  | foo.bar
///  | ^
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileErrors {
    text: String,
    messages: Vec<String>,
    stage: Stage,
}

/// When an expression was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// It cannot be parsed, or its types do not fit.
    Compilation,
    /// What can be computed beforehand cannot be (`int('a')`).
    Instantiation,
}

impl CompileErrors {
    pub(crate) fn new(text: String, messages: Vec<String>) -> CompileErrors {
        CompileErrors { text, messages, stage: Stage::Compilation }
    }

    pub(crate) fn instantiation(message: String) -> CompileErrors {
        CompileErrors { text: message.clone(), messages: vec![message], stage: Stage::Instantiation }
    }

    /// When the expression was refused; messages to clients differ in it.
    pub fn stage(&self) -> Stage {
        self.stage
    }

    /// The messages alone, in order of place.
    pub fn messages(&self) -> &[String] {
        &self.messages
    }
}

impl fmt::Display for CompileErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for CompileErrors {}
