//! Lists as sets: <https://pkg.go.dev/github.com/google/cel-go/ext#Sets>.

use super::collections::contains;
use super::{Function, no_such_overload};
use crate::EvaluationError;
use crate::value::Value;

pub(super) fn lookup(name: &str) -> Option<Function> {
    Some(match name {
        "sets.contains" => |args| match args {
            [list @ Value::List(_), part @ Value::List(_)] => contains_all(list, part).map(Value::Bool),
            args => Err(no_such_overload("sets.contains", args)),
        },
        "sets.equivalent" => |args| match args {
            [one @ Value::List(_), other @ Value::List(_)] => {
                Ok(Value::Bool(contains_all(one, other)? && contains_all(other, one)?))
            }
            args => Err(no_such_overload("sets.equivalent", args)),
        },
        "sets.intersects" => |args| match args {
            [Value::List(one), other @ Value::List(_)] => {
                for item in one.iter() {
                    // An item that cannot be compared is in neither list.
                    match contains(other, &item?) {
                        Ok(true) => return Ok(Value::Bool(true)),
                        Err(error) if error.ends_evaluation() => return Err(error),
                        _ => {}
                    }
                }
                Ok(Value::Bool(false))
            }
            args => Err(no_such_overload("sets.intersects", args)),
        },
        _ => return None,
    })
}

fn contains_all(list: &Value<'_>, part: &Value<'_>) -> Result<bool, EvaluationError> {
    let Value::List(part) = part else { return Ok(false) };
    for item in part.iter() {
        if !contains(list, &item?)? {
            return Ok(false);
        }
    }
    Ok(true)
}
