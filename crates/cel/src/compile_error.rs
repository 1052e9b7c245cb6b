//! Errors of compilation.

use std::fmt;

/// All errors of an expression.
///
/// The displayed form is the one for clients. Each error has a message, the line of source and a mark under the
/// position:
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

/// The stage at which an expression is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Parsing or type checking failed.
    Compilation,
    /// The evaluation of a constant part failed (`int('a')`).
    Instantiation,
}

impl CompileErrors {
    pub(crate) fn new(text: String, messages: Vec<String>) -> CompileErrors {
        CompileErrors { text, messages, stage: Stage::Compilation }
    }

    pub(crate) fn instantiation(message: String) -> CompileErrors {
        CompileErrors { text: message.clone(), messages: vec![message], stage: Stage::Instantiation }
    }

    /// The stage of the rejection; messages to clients depend on it.
    pub fn stage(&self) -> Stage {
        self.stage
    }

    /// The messages alone, in order of position.
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
