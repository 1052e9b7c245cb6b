//! Regular expressions: `matches`, `find`, `findAll`. Patterns written in the program are compiled with it; these are
//! the functions for those that are computed.

use super::{Function, no_such_overload};
use crate::EvaluationError;
use crate::pattern::compile;
use crate::value::{Text, Value};
use regex::Regex;

pub(super) fn lookup(name: &str) -> Option<Function> {
    Some(match name {
        "matches" => |args| match args {
            [Value::String(text), Value::String(pattern)] => {
                let pattern = compile(pattern).map_err(EvaluationError::failed)?;
                Ok(Value::Bool(pattern.is_match(text)))
            }
            [Value::String(_), _] | [Value::Timestamp(_) | Value::Duration(_), _] => {
                Err(EvaluationError::NO_SUCH_OVERLOAD)
            }
            _ => Err("no such overload: matches".into()),
        },
        "find" => |args| match args {
            [text @ Value::String(_), Value::String(pattern)] => find(&illegal(pattern)?, text),
            args => Err(no_such_overload("find", args)),
        },
        "findAll" => |args| match args {
            [text @ Value::String(_), Value::String(pattern)] => find_all(&illegal(pattern)?, text, -1),
            [text @ Value::String(_), Value::String(pattern), Value::Int(limit)] => {
                find_all(&illegal(pattern)?, text, *limit)
            }
            args => Err(no_such_overload("findAll", args)),
        },
        _ => return None,
    })
}

fn illegal(pattern: &str) -> Result<Regex, EvaluationError> {
    compile(pattern).map_err(|error| EvaluationError::failed(format!("Illegal regex: {error}")))
}

/// Whether a pattern is found in a text.
pub(crate) fn matches<'a>(pattern: &Regex, text: &Value<'a>) -> Result<Value<'a>, EvaluationError> {
    match text {
        Value::String(text) => Ok(Value::Bool(pattern.is_match(text))),
        _ => Err(EvaluationError::NO_SUCH_OVERLOAD),
    }
}

/// What of a text a pattern finds first, or nothing.
pub(crate) fn find<'a>(pattern: &Regex, text: &Value<'a>) -> Result<Value<'a>, EvaluationError> {
    Ok(match text {
        Value::String(Text::Borrowed(text)) => {
            Value::from(pattern.find(text).map_or("", |found| found.as_str()))
        }
        Value::String(text) => Value::from(pattern.find(text).map_or("", |found| found.as_str()).to_owned()),
        _ => return Err(EvaluationError::NO_SUCH_OVERLOAD),
    })
}

/// All that a pattern finds in a text, up to a number of times if that is not negative.
pub(crate) fn find_all<'a>(
    pattern: &Regex,
    text: &Value<'a>,
    limit: i64,
) -> Result<Value<'a>, EvaluationError> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let found: Vec<Value<'a>> = match text {
        Value::String(Text::Borrowed(text)) => {
            pattern.find_iter(text).take(limit).map(|found| Value::from(found.as_str())).collect()
        }
        Value::String(text) => {
            pattern.find_iter(text).take(limit).map(|found| Value::from(found.as_str().to_owned())).collect()
        }
        _ => return Err(EvaluationError::NO_SUCH_OVERLOAD),
    };
    Ok(Value::from(found))
}
