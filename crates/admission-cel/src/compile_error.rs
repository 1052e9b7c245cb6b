//! Errors of compilation.

/// An error of an expression, in the text of messages to clients.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// The expression cannot be parsed, or its types do not fit.
    #[error("{0}")]
    Invalid(Box<str>),
    /// The expression is valid, but it cannot be prepared for evaluation.
    #[error("{0}")]
    Internal(Box<str>),
}
