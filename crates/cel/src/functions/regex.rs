//! Regular expressions: `matches`, `find`, `findAll`. Literal patterns are compiled with the program; these functions
//! serve computed patterns.

use super::{Function, no_such_overload};
use crate::EvaluationError;
use crate::pattern::{self, Pattern};
use crate::value::{Text, Value};
use crate::work;
use std::ops::Range;

pub(super) fn lookup(name: &str) -> Option<Function> {
    Some(match name {
        "matches" => |args| match args {
            [text @ Value::String(_), Value::String(pattern)] => {
                matches(&computed(pattern)?.map_err(EvaluationError::failed)?, text)
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

fn illegal(pattern: &str) -> Result<Pattern, EvaluationError> {
    computed(pattern)?.map_err(|error| EvaluationError::failed(format!("Illegal regex: {error}")))
}

/// The work of compiling a pattern for each of its positions, in visited items.
const COMPILING: u64 = 16;

/// Compiles a pattern; the work depends on its weight.
fn computed(pattern: &str) -> Result<Result<Pattern, String>, EvaluationError> {
    work::count((pattern.len() as u64).saturating_add(pattern::weight(pattern).saturating_mul(COMPILING)))?;
    Ok(pattern::compile(pattern))
}

/// Whether a text contains a match.
pub(crate) fn matches<'a>(pattern: &Pattern, text: &Value<'a>) -> Result<Value<'a>, EvaluationError> {
    match text {
        Value::String(text) => {
            work::count(pattern.effort(text))?;
            Ok(Value::Bool(pattern.is_match(text)))
        }
        _ => Err(EvaluationError::NO_SUCH_OVERLOAD),
    }
}

/// The first match in a text, or an empty text.
pub(crate) fn find<'a>(pattern: &Pattern, text: &Value<'a>) -> Result<Value<'a>, EvaluationError> {
    let Value::String(text) = text else { return Err(EvaluationError::NO_SUCH_OVERLOAD) };
    work::count(pattern.effort(text.as_str()))?;
    let found = pattern.matches(text.as_str()).next().unwrap_or_default();
    Ok(part(text, found))
}

/// All matches in a text, up to a limit if that is not negative.
pub(crate) fn find_all<'a>(
    pattern: &Pattern,
    text: &Value<'a>,
    limit: i64,
) -> Result<Value<'a>, EvaluationError> {
    let Value::String(text) = text else { return Err(EvaluationError::NO_SUCH_OVERLOAD) };
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut found: Vec<Value<'a>> = Vec::new();
    let whole = text.as_str();
    let mut places = pattern.matches(whole);
    let mut rest = whole;
    while found.len() < limit {
        // Each search may read the whole rest, even for a short match.
        work::count(pattern.effort(rest).saturating_add(1))?;
        let Some(place) = places.next() else { break };
        rest = whole.get(place.end..).unwrap_or_default();
        found.push(part(text, place));
    }
    Ok(Value::from(found))
}

fn part<'a>(text: &Text<'a>, place: Range<usize>) -> Value<'a> {
    match text {
        Text::Borrowed(text) => Value::from(text.get(place).unwrap_or_default()),
        text => Value::from(text.as_str().get(place).unwrap_or_default().to_owned()),
    }
}
