//! The form of functions, and the bounds of their results.

use crate::EvaluationError;
use crate::value::Value;
use crate::work;

/// The implementation of a function; the target of a method is the first argument.
pub(crate) type Function = for<'a> fn(&mut [Value<'a>]) -> Result<Value<'a>, EvaluationError>;

/// The maximum length of a text that a call builds, in bytes. Cost budgets do not suffice to read longer texts.
const MAX_TEXT_LENGTH: usize = 16 << 20;

/// The error of a call whose arguments fit no overload.
pub(crate) fn no_such_overload(name: &str, args: &[Value<'_>]) -> EvaluationError {
    let types: Vec<_> = args.iter().map(Value::type_name).collect();
    EvaluationError::failed(format!("no such overload: {name}({})", types.join(", ")))
}

/// Fails if a text is longer than a call may build.
pub(crate) fn bounded(length: usize) -> Result<(), EvaluationError> {
    work::note_bytes(length);
    if length > MAX_TEXT_LENGTH { Err(EvaluationError::CostLimitExceeded) } else { Ok(()) }
}
