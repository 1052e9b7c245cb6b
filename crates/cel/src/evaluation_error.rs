//! Errors of evaluation.

use std::borrow::Cow;
use std::fmt;

/// The reason why an evaluation yields no value.
///
/// The text of a [`EvaluationError::Failed`] reaches clients in messages, so it equals that of the reference
/// implementation (<https://github.com/google/cel-go>).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EvaluationError {
    /// The expression has no value: a key is missing, a number too large, an argument malformed. `&&`, `||` and
    /// `exists` absorb this error when their other operands decide the result.
    Failed(Cow<'static, str>),
    /// The reference's implementation fails, and not the expression: an operand of a call whose cost depends on it has no
    /// value. No operator absorbs this.
    Internal(String),
    /// The evaluation exceeded its cost budget. No operator absorbs this.
    CostLimitExceeded,
    /// The evaluation stopped because the decision of an [`Authority`](crate::Authority) is pending. No operator
    /// absorbs this; the evaluation must be repeated.
    Undecided,
}

impl EvaluationError {
    /// A failure with a computed message.
    pub(crate) fn failed(text: String) -> EvaluationError {
        EvaluationError::Failed(Cow::Owned(text))
    }

    /// The error of operators and methods without an overload for their arguments.
    pub(crate) const NO_SUCH_OVERLOAD: EvaluationError =
        EvaluationError::Failed(Cow::Borrowed("no such overload"));

    /// The error of integers and durations beyond 64 bits.
    pub(crate) const INTEGER_OVERFLOW: EvaluationError =
        EvaluationError::Failed(Cow::Borrowed("integer overflow"));

    /// The error of unsigned integers below zero or beyond 64 bits.
    pub(crate) const UNSIGNED_OVERFLOW: EvaluationError =
        EvaluationError::Failed(Cow::Borrowed("unsigned integer overflow"));

    /// The error of times before the year 1 or after the year 9999.
    pub(crate) const TIMESTAMP_OVERFLOW: EvaluationError =
        EvaluationError::Failed(Cow::Borrowed("timestamp overflow"));

    /// Whether the error ends the whole evaluation, so that no operator may absorb it.
    pub(crate) fn ends_evaluation(&self) -> bool {
        !matches!(self, EvaluationError::Failed(_))
    }
}

impl From<&'static str> for EvaluationError {
    fn from(text: &'static str) -> EvaluationError {
        EvaluationError::Failed(Cow::Borrowed(text))
    }
}

impl fmt::Display for EvaluationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            EvaluationError::Failed(text) => text,
            EvaluationError::Internal(text) => return write!(f, "internal error: {text}"),
            EvaluationError::CostLimitExceeded => "operation cancelled: actual cost limit exceeded",
            EvaluationError::Undecided => "operation interrupted: an authorization check is not decided yet",
        })
    }
}

impl std::error::Error for EvaluationError {}
