//! Why an evaluation gave no value.

use std::borrow::Cow;
use std::fmt;

/// Why an evaluation gave no value.
///
/// The text of a [`EvaluationError::Failed`] reaches clients in messages, so it is the one the reference
/// implementation (<https://github.com/google/cel-go>) writes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EvaluationError {
    /// The expression has no value: a key is missing, a number too large, an argument malformed. `&&`, `||` and
    /// `exists` absorb this when their other operands decide the result.
    Failed(Cow<'static, str>),
    /// The evaluation was stopped since it cost more than its budget. Nothing absorbs this.
    CostLimitExceeded,
    /// The evaluation was stopped since its caller no longer wants it. Nothing absorbs this.
    Interrupted,
    /// The evaluation was stopped since an [`Authority`](crate::Authority) has to find out the answer to a check first.
    /// Nothing absorbs this; the evaluation has to be repeated.
    Undecided,
}

impl EvaluationError {
    /// A failure with a text made for the occasion.
    pub(crate) fn failed(text: String) -> EvaluationError {
        EvaluationError::Failed(Cow::Owned(text))
    }

    /// What operators and methods without a signature for their arguments say.
    pub(crate) const NO_SUCH_OVERLOAD: EvaluationError =
        EvaluationError::Failed(Cow::Borrowed("no such overload"));

    /// What integers beyond 64 bits say, durations too.
    pub(crate) const INTEGER_OVERFLOW: EvaluationError =
        EvaluationError::Failed(Cow::Borrowed("integer overflow"));

    /// What unsigned integers below zero or beyond 64 bits say.
    pub(crate) const UNSIGNED_OVERFLOW: EvaluationError =
        EvaluationError::Failed(Cow::Borrowed("unsigned integer overflow"));

    /// What times before the year 1 or after the year 9999 say.
    pub(crate) const TIMESTAMP_OVERFLOW: EvaluationError =
        EvaluationError::Failed(Cow::Borrowed("timestamp overflow"));

    /// Whether the evaluation as a whole ends, whatever stands around the failing part.
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
            EvaluationError::CostLimitExceeded => "operation cancelled: actual cost limit exceeded",
            EvaluationError::Interrupted => "operation interrupted",
            EvaluationError::Undecided => "operation interrupted: an authorization check is not decided yet",
        })
    }
}

impl std::error::Error for EvaluationError {}
