//! `in`, `size`, and the map insertion of two-variable macros.

use super::{Function, no_such_overload};
use crate::EvaluationError;
use crate::value::{Map, Value};

pub(super) fn lookup(name: &str) -> Option<Function> {
    Some(match name {
        "@in" => |args| match args {
            [item, container] => contains(container, item).map(Value::Bool),
            _ => Err(EvaluationError::NO_SUCH_OVERLOAD),
        },
        "includes" => includes,
        "size" => size,
        "cel.@mapInsert" => map_insert,
        _ => return None,
    })
}

/// The largest number of values of an attribute that `includes` compares.
pub(crate) const MAX_INCLUDED: usize = 48;

/// Whether a list has an item, or a scalar is equal to it.
fn includes<'a>(args: &mut [Value<'a>]) -> Result<Value<'a>, EvaluationError> {
    let equal = |value: Result<Value<'a>, EvaluationError>, wanted: &Value<'a>| match value
        .and_then(|value| value.equal(wanted))
    {
        Err(error) if error.ends_evaluation() => Err(error),
        // Values that cannot be compared are not equal.
        outcome => Ok(outcome.unwrap_or(false)),
    };
    match args {
        [Value::List(list), wanted] => {
            for item in list.iter().take(MAX_INCLUDED) {
                if equal(item, wanted)? {
                    return Ok(Value::Bool(true));
                }
            }
            if list.len() > MAX_INCLUDED {
                return Err(EvaluationError::failed(format!(
                    "'includes' function cannot be applied to lists longer than {MAX_INCLUDED} values"
                )));
            }
            Ok(Value::Bool(false))
        }
        [scalar, wanted] => equal(Ok(scalar.clone()), wanted).map(Value::Bool),
        _ => Err(EvaluationError::NO_SUCH_OVERLOAD),
    }
}

/// Whether a list contains an item, or a map a key.
pub(crate) fn contains(container: &Value<'_>, wanted: &Value<'_>) -> Result<bool, EvaluationError> {
    match container {
        Value::List(list) => {
            // In lists of objects, an item that cannot be compared is an error, unless another item is equal.
            let own = list.has_schema();
            let mut error = None;
            for item in list.iter() {
                let equal = match own {
                    true => item.and_then(|item| item.equal(wanted)),
                    false => item.and_then(|item| wanted.equal(&item)),
                };
                match equal {
                    Ok(true) => return Ok(true),
                    Ok(false) => {}
                    Err(problem) if problem.ends_evaluation() => return Err(problem),
                    Err(problem) if own => error = error.or(Some(problem)),
                    Err(_) => {}
                }
            }
            error.map_or(Ok(false), Err)
        }
        Value::Map(map) => Ok(map.find(wanted)?.is_some()),
        _ => Err(EvaluationError::NO_SUCH_OVERLOAD),
    }
}

fn size<'a>(args: &mut [Value<'a>]) -> Result<Value<'a>, EvaluationError> {
    match args {
        [value @ (Value::String(_) | Value::Bytes(_) | Value::List(_) | Value::Map(_))] => {
            Ok(Value::Int(i64::try_from(value.size()).unwrap_or(i64::MAX)))
        }
        [Value::Timestamp(_) | Value::Duration(_)] => Err(EvaluationError::NO_SUCH_OVERLOAD),
        _ => Err("no such overload: size".into()),
    }
}

fn map_insert<'a>(args: &mut [Value<'a>]) -> Result<Value<'a>, EvaluationError> {
    match args {
        [Value::Map(map), key, value] => {
            let mut map = std::mem::replace(map, Map::from(indexmap::IndexMap::new()));
            map.insert(key, std::mem::replace(value, Value::Null))?;
            Ok(Value::Map(map))
        }
        [Value::Map(map), Value::Map(update)] => {
            let mut map = std::mem::replace(map, Map::from(indexmap::IndexMap::new()));
            for key in update.keys() {
                if let Some(value) = update.find(&key)? {
                    map.insert(&key, value)?;
                }
            }
            Ok(Value::Map(map))
        }
        args => Err(no_such_overload("cel.@mapInsert", args)),
    }
}

#[cfg(test)]
mod tests {
    use crate::declarations::Library;
    use crate::{Activation, Environment};

    #[test]
    fn attributes_include_values() {
        let environment = Environment::new().with_library(Library::DeviceAttributes);
        for (expression, expected) in [
            ("[1, 2].includes(2)", Ok(true)),
            ("[1, 2].includes(3)", Ok(false)),
            ("[dyn(1), dyn('a')].includes('a')", Ok(true)),
            ("dyn(1).includes(1)", Ok(true)),
            ("dyn('a').includes(1)", Ok(false)),
            ("lists.range(49).includes(47)", Ok(true)),
            ("lists.range(48).includes(100)", Ok(false)),
            (
                "lists.range(49).includes(48)",
                Err("'includes' function cannot be applied to lists longer than 48 values"),
            ),
        ] {
            let program = environment.compile(expression).expect(expression);
            let mut budget = 1_000_000;
            let value = program.evaluate(&Activation::new(), &mut budget);
            let value = value.map(|value| value.as_bool()).map_err(|error| error.to_string());
            assert_eq!(value, expected.map(Some).map_err(str::to_owned), "{expression}");
        }
    }
}
