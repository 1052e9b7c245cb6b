//! Operators: arithmetic with overflow errors, ordering, negation.

use super::Function;
use crate::EvaluationError;
use crate::value::{List, Text, Value};
use std::cmp::Ordering;

pub(super) fn lookup(name: &str) -> Option<Function> {
    Some(match name {
        "_+_" => add,
        "_-_" => subtract,
        "_*_" => multiply,
        "_/_" => divide,
        "_%_" => modulo,
        "-_" => negate,
        "!_" => not,
        "_<_" => |args| compare("_<_", args, Ordering::is_lt),
        "_<=_" => |args| compare("_<=_", args, Ordering::is_le),
        "_>_" => |args| compare("_>_", args, Ordering::is_gt),
        "_>=_" => |args| compare("_>=_", args, Ordering::is_ge),
        _ => return None,
    })
}

/// The error for a left operand without the operator.
fn without_operator(operator: &str, left: &Value<'_>) -> EvaluationError {
    match left {
        // These types look the operator up among their methods.
        Value::String(_) | Value::Timestamp(_) | Value::Duration(_) => EvaluationError::NO_SUCH_OVERLOAD,
        _ => EvaluationError::failed(format!("no such overload: {operator}")),
    }
}

/// `+`: sums, and joins texts, bytes and lists.
pub(crate) fn add<'a>(args: &mut [Value<'a>]) -> Result<Value<'a>, EvaluationError> {
    Ok(match args {
        [Value::Int(one), Value::Int(other)] => {
            Value::Int(one.checked_add(*other).ok_or(EvaluationError::INTEGER_OVERFLOW)?)
        }
        [Value::Uint(one), Value::Uint(other)] => {
            Value::Uint(one.checked_add(*other).ok_or(EvaluationError::UNSIGNED_OVERFLOW)?)
        }
        [Value::Double(one), Value::Double(other)] => Value::Double(*one + *other),
        [Value::String(one), Value::String(other)] => {
            super::bounded(one.len() + other.len())?;
            let mut text = String::with_capacity(one.len() + other.len());
            text.push_str(one);
            text.push_str(other);
            Value::String(Text::from(text))
        }
        [Value::Bytes(one), Value::Bytes(other)] => {
            super::bounded(one.len() + other.len())?;
            Value::Bytes([&**one, &**other].concat().into())
        }
        [Value::List(one), Value::List(other)] => {
            let one = std::mem::replace(one, List::from(Vec::new()));
            let other = std::mem::replace(other, List::from(Vec::new()));
            Value::List(one.join(other)?)
        }
        [Value::Duration(one), Value::Duration(other)] => {
            Value::Duration(one.checked_add(*other).ok_or(EvaluationError::INTEGER_OVERFLOW)?)
        }
        [Value::Duration(duration), Value::Timestamp(time)]
        | [Value::Timestamp(time), Value::Duration(duration)] => Value::Timestamp(time.add(*duration)?),
        [
            Value::Int(_)
            | Value::Uint(_)
            | Value::Double(_)
            | Value::String(_)
            | Value::Bytes(_)
            | Value::List(_)
            | Value::Duration(_)
            | Value::Timestamp(_),
            _,
        ] => return Err(EvaluationError::NO_SUCH_OVERLOAD),
        [left, _] => return Err(without_operator("_+_", left)),
        _ => return Err(EvaluationError::NO_SUCH_OVERLOAD),
    })
}

fn subtract<'a>(args: &mut [Value<'a>]) -> Result<Value<'a>, EvaluationError> {
    Ok(match args {
        [Value::Int(one), Value::Int(other)] => {
            Value::Int(one.checked_sub(*other).ok_or(EvaluationError::INTEGER_OVERFLOW)?)
        }
        [Value::Uint(one), Value::Uint(other)] => {
            Value::Uint(one.checked_sub(*other).ok_or(EvaluationError::UNSIGNED_OVERFLOW)?)
        }
        [Value::Double(one), Value::Double(other)] => Value::Double(*one - *other),
        [Value::Duration(one), Value::Duration(other)] => {
            Value::Duration(one.checked_sub(*other).ok_or(EvaluationError::INTEGER_OVERFLOW)?)
        }
        [Value::Timestamp(time), Value::Duration(duration)] => Value::Timestamp(time.subtract(*duration)?),
        [Value::Timestamp(time), Value::Timestamp(other)] => Value::Duration(time.since(*other)?),
        [Value::Int(_) | Value::Uint(_) | Value::Double(_) | Value::Duration(_) | Value::Timestamp(_), _] => {
            return Err(EvaluationError::NO_SUCH_OVERLOAD);
        }
        [left, _] => return Err(without_operator("_-_", left)),
        _ => return Err(EvaluationError::NO_SUCH_OVERLOAD),
    })
}

fn multiply<'a>(args: &mut [Value<'a>]) -> Result<Value<'a>, EvaluationError> {
    Ok(match args {
        [Value::Int(one), Value::Int(other)] => {
            Value::Int(one.checked_mul(*other).ok_or(EvaluationError::INTEGER_OVERFLOW)?)
        }
        [Value::Uint(one), Value::Uint(other)] => {
            Value::Uint(one.checked_mul(*other).ok_or(EvaluationError::UNSIGNED_OVERFLOW)?)
        }
        [Value::Double(one), Value::Double(other)] => Value::Double(*one * *other),
        [Value::Int(_) | Value::Uint(_) | Value::Double(_), _] => {
            return Err(EvaluationError::NO_SUCH_OVERLOAD);
        }
        [left, _] => return Err(without_operator("_*_", left)),
        _ => return Err(EvaluationError::NO_SUCH_OVERLOAD),
    })
}

fn divide<'a>(args: &mut [Value<'a>]) -> Result<Value<'a>, EvaluationError> {
    Ok(match args {
        [Value::Int(_), Value::Int(0)] | [Value::Uint(_), Value::Uint(0)] => {
            return Err("division by zero".into());
        }
        [Value::Int(one), Value::Int(other)] => {
            Value::Int(one.checked_div(*other).ok_or(EvaluationError::INTEGER_OVERFLOW)?)
        }
        [Value::Uint(one), Value::Uint(other)] => Value::Uint(*one / *other),
        [Value::Double(one), Value::Double(other)] => Value::Double(*one / *other),
        [Value::Int(_) | Value::Uint(_) | Value::Double(_), _] => {
            return Err(EvaluationError::NO_SUCH_OVERLOAD);
        }
        [left, _] => return Err(without_operator("_/_", left)),
        _ => return Err(EvaluationError::NO_SUCH_OVERLOAD),
    })
}

fn modulo<'a>(args: &mut [Value<'a>]) -> Result<Value<'a>, EvaluationError> {
    Ok(match args {
        [Value::Int(_), Value::Int(0)] | [Value::Uint(_), Value::Uint(0)] => {
            return Err("modulus by zero".into());
        }
        [Value::Int(one), Value::Int(other)] => {
            Value::Int(one.checked_rem(*other).ok_or(EvaluationError::INTEGER_OVERFLOW)?)
        }
        [Value::Uint(one), Value::Uint(other)] => Value::Uint(*one % *other),
        [Value::Int(_) | Value::Uint(_), _] => return Err(EvaluationError::NO_SUCH_OVERLOAD),
        [left, _] => return Err(without_operator("_%_", left)),
        _ => return Err(EvaluationError::NO_SUCH_OVERLOAD),
    })
}

fn negate<'a>(args: &mut [Value<'a>]) -> Result<Value<'a>, EvaluationError> {
    Ok(match args {
        [Value::Int(value)] => Value::Int(value.checked_neg().ok_or(EvaluationError::INTEGER_OVERFLOW)?),
        [Value::Double(value)] => Value::Double(-*value),
        [Value::Duration(value)] => {
            Value::Duration(value.checked_neg().ok_or(EvaluationError::INTEGER_OVERFLOW)?)
        }
        [Value::Bool(_)] => return Err(EvaluationError::NO_SUCH_OVERLOAD),
        [operand] => return Err(without_operator("-_", operand)),
        _ => return Err(EvaluationError::NO_SUCH_OVERLOAD),
    })
}

fn not<'a>(args: &mut [Value<'a>]) -> Result<Value<'a>, EvaluationError> {
    match args {
        [Value::Bool(value)] => Ok(Value::Bool(!*value)),
        _ => Err(EvaluationError::NO_SUCH_OVERLOAD),
    }
}

fn compare<'a>(
    operator: &str,
    args: &mut [Value<'a>],
    wanted: fn(Ordering) -> bool,
) -> Result<Value<'a>, EvaluationError> {
    match args {
        [left, right] if left.is_comparable() => Ok(Value::Bool(wanted(left.compare(right)?))),
        [left, _] => Err(without_operator(operator, left)),
        _ => Err(EvaluationError::NO_SUCH_OVERLOAD),
    }
}
