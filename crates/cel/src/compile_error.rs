//! Errors of compilation.

use crate::types::Type;
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
    result_type: Option<Type>,
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
        CompileErrors { text, messages, stage: Stage::Compilation, result_type: None }
    }

    /// An error of an expression that was found to have a type, if it came so far.
    pub(crate) fn instantiation(message: String, result_type: Option<Type>) -> CompileErrors {
        CompileErrors {
            text: message.clone(),
            messages: vec![message],
            stage: Stage::Instantiation,
            result_type,
        }
    }

    /// The type of the result, for an expression of which only the instantiation failed. A wrong one is the error that
    /// clients see.
    pub fn result_type(&self) -> Option<&Type> {
        self.result_type.as_ref()
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
