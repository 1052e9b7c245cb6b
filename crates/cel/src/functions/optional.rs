//! Optional values. `or` and `orValue` are elsewhere, because they evaluate their operands lazily.

use super::{Function, no_such_overload};
use crate::EvaluationError;
use crate::value::Value;

pub(super) fn lookup(name: &str) -> Option<Function> {
    Some(match name {
        "optional.of" => |args| match args {
            [value] => Ok(Value::some(std::mem::replace(value, Value::Null))),
            args => Err(no_such_overload("optional.of", args)),
        },
        "optional.ofNonZeroValue" => |args| match args {
            [value] if value.is_zero() => Ok(Value::Optional(None)),
            [value] => Ok(Value::some(std::mem::replace(value, Value::Null))),
            args => Err(no_such_overload("optional.ofNonZeroValue", args)),
        },
        "optional.none" => |_| Ok(Value::Optional(None)),
        "value" => |args| match args {
            [Value::Optional(Some(value))] => Ok((**value).clone()),
            [Value::Optional(None)] => Err("optional.none() dereference".into()),
            args => Err(no_such_overload("value", args)),
        },
        "hasValue" => |args| match args {
            [Value::Optional(value)] => Ok(Value::Bool(value.is_some())),
            args => Err(no_such_overload("hasValue", args)),
        },
        "optional.unwrap" => |args| unwrap("optional.unwrap", args),
        "unwrapOpt" => |args| unwrap("unwrapOpt", args),
        _ => return None,
    })
}

fn unwrap<'a>(name: &str, args: &mut [Value<'a>]) -> Result<Value<'a>, EvaluationError> {
    let [Value::List(list)] = args else { return Err(no_such_overload(name, args)) };
    let mut items = Vec::new();
    for item in list.iter() {
        match item? {
            Value::Optional(Some(value)) => items.push((*value).clone()),
            Value::Optional(None) => {}
            other => {
                let other = other.display();
                return Err(EvaluationError::failed(format!("value {other} is not optional")));
            }
        }
    }
    Ok(Value::from(items))
}
