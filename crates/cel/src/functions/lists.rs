//! Functions of lists: Kubernetes' own (<https://kubernetes.io/docs/reference/using-api/cel/#kubernetes-list-library>)
//! and the extension in its version 3 (<https://pkg.go.dev/github.com/google/cel-go/ext#Lists>).

use super::strings::{index_of, last_index_of};
use super::{Function, add, no_such_overload};
use crate::EvaluationError;
use crate::value::{List, MAX_LIST_LENGTH, Value};
use std::cmp::Ordering;

type Outcome<'a> = Result<Value<'a>, EvaluationError>;

pub(super) fn lookup(name: &str, overload: &str) -> Option<Function> {
    Some(match name {
        "isSorted" => |args| {
            of_comparable("isSorted", args)?;
            is_sorted(args)
        },
        "sum" => match overload {
            "list_uint_sum_uint" => |args| sum(args, Value::Uint(0)),
            "list_double_sum_double" => |args| sum(args, Value::Double(0.0)),
            "list_duration_sum_duration" => |args| sum(args, Value::Duration(0)),
            "list_int_sum_int" => |args| sum(args, Value::Int(0)),
            _ => |args| {
                let zero = match args {
                    [Value::List(list)] => match list.get(0) {
                        Some(Ok(Value::Uint(_))) => Value::Uint(0),
                        Some(Ok(Value::Double(_))) => Value::Double(0.0),
                        Some(Ok(Value::Duration(_))) => Value::Duration(0),
                        _ => Value::Int(0),
                    },
                    _ => Value::Int(0),
                };
                sum(args, zero)
            },
        },
        "min" => |args| {
            of_comparable("min", args)?;
            extreme("min", args, Ordering::Greater)
        },
        "max" => |args| {
            of_comparable("max", args)?;
            extreme("max", args, Ordering::Less)
        },
        "indexOf" => |args| match args {
            [Value::String(text), Value::String(part)] => index_of(text, part, 0).map(Value::Int),
            [Value::String(text), Value::String(part), Value::Int(offset)] => {
                index_of(text, part, *offset).map(Value::Int)
            }
            [Value::List(list), item] => position(0..list.len(), list, item),
            args => Err(no_such_overload("indexOf", args)),
        },
        "lastIndexOf" => |args| match args {
            [Value::String(text), Value::String(part)] => last_index_of(text, part, None).map(Value::Int),
            [Value::String(text), Value::String(part), Value::Int(offset)] => {
                last_index_of(text, part, Some(*offset)).map(Value::Int)
            }
            [Value::List(list), item] => position((0..list.len()).rev(), list, item),
            args => Err(no_such_overload("lastIndexOf", args)),
        },
        "slice" => slice,
        "flatten" => flatten,
        "sort" => |args| match args {
            [Value::List(list)] => sort_by(list, list).map(Value::from),
            _ => Err("no such overload: sort".into()),
        },
        "@sortByAssociatedKeys" => |args| match args {
            [Value::List(list), Value::List(keys)] => sort_by(list, keys).map(Value::from),
            _ => Err("no such overload: @sortByAssociatedKeys".into()),
        },
        "lists.range" => |args| match args {
            [Value::Int(end)] if *end > MAX_LIST_LENGTH as i64 => Err(EvaluationError::CostLimitExceeded),
            [Value::Int(end)] => Ok(Value::from((0..*end).map(Value::Int).collect::<Vec<_>>())),
            args => Err(no_such_overload("lists.range", args)),
        },
        "reverse" => |args| match args {
            [Value::List(list)] => {
                let mut items = items(list)?;
                items.reverse();
                Ok(Value::from(items))
            }
            args => Err(no_such_overload("reverse", args)),
        },
        "distinct" => distinct,
        "first" => |args| match args {
            [Value::List(list)] => Ok(Value::optional(list.get(0).transpose()?)),
            args => Err(no_such_overload("first", args)),
        },
        "last" => |args| match args {
            [Value::List(list)] => {
                let last = list.len().checked_sub(1).and_then(|last| list.get(last));
                Ok(Value::optional(last.transpose()?))
            }
            args => Err(no_such_overload("last", args)),
        },
        _ => return None,
    })
}

/// Checks that the list type, taken from the first item, has an overload.
fn of_comparable(name: &str, args: &[Value<'_>]) -> Result<(), EvaluationError> {
    match args {
        [Value::List(list)] if list.get(0).is_none_or(|item| item.is_ok_and(|item| item.is_comparable())) => {
            Ok(())
        }
        args => Err(no_such_overload(name, args)),
    }
}

fn items<'a>(list: &List<'a>) -> Result<Vec<Value<'a>>, EvaluationError> {
    list.iter().collect()
}

fn is_sorted<'a>(args: &mut [Value<'a>]) -> Outcome<'a> {
    let [Value::List(list)] = args else { return Err(no_such_overload("isSorted", args)) };
    let mut previous: Option<Value<'a>> = None;
    for item in list.iter() {
        let item = item?;
        if !item.is_comparable() {
            return Err(EvaluationError::NO_SUCH_OVERLOAD);
        }
        // Items that cannot be compared count as ordered.
        if previous.is_some_and(|previous| previous.compare(&item) == Ok(Ordering::Greater)) {
            return Ok(Value::Bool(false));
        }
        previous = Some(item);
    }
    Ok(Value::Bool(true))
}

fn sum<'a>(args: &mut [Value<'a>], zero: Value<'a>) -> Outcome<'a> {
    let list = match args {
        [Value::List(list)]
            if list.get(0).is_none_or(|item| item.is_ok_and(|item| item.type_name() == zero.type_name())) =>
        {
            list
        }
        args => return Err(no_such_overload("sum", args)),
    };
    let mut total = zero;
    for item in list.iter() {
        total = add(&mut [total, item?])?;
    }
    Ok(total)
}

/// The minimum or maximum item.
fn extreme<'a>(name: &str, args: &mut [Value<'a>], preferred: Ordering) -> Outcome<'a> {
    let [Value::List(list)] = args else { return Err(no_such_overload(name, args)) };
    let mut result: Option<Value<'a>> = None;
    for item in list.iter() {
        let item = item?;
        if !item.is_comparable() {
            return Err(EvaluationError::NO_SUCH_OVERLOAD);
        }
        if result.as_ref().is_none_or(|result| result.compare(&item) == Ok(preferred)) {
            result = Some(item);
        }
    }
    result.ok_or_else(|| EvaluationError::failed(format!("{name} called on empty list")))
}

fn position<'a>(positions: impl Iterator<Item = usize>, list: &List<'a>, wanted: &Value<'a>) -> Outcome<'a> {
    for position in positions {
        let equal = match list.get(position).map(|item| item.and_then(|item| item.equal(wanted))) {
            Some(Err(error)) if error.ends_evaluation() => return Err(error),
            equal => equal == Some(Ok(true)),
        };
        if equal {
            return Ok(Value::Int(i64::try_from(position).unwrap_or(i64::MAX)));
        }
    }
    Ok(Value::Int(-1))
}

fn slice<'a>(args: &mut [Value<'a>]) -> Outcome<'a> {
    let [Value::List(list), Value::Int(start), Value::Int(end)] = args else {
        return Err(no_such_overload("slice", args));
    };
    let failed =
        |problem: &str| Err(EvaluationError::failed(format!("cannot slice({start}, {end}), {problem}")));
    let (Ok(first), Ok(last)) = (usize::try_from(*start), usize::try_from(*end)) else {
        return failed("negative indexes not supported");
    };
    if first > last {
        return failed("start index must be less than or equal to end index");
    }
    if list.len() < last {
        return failed(&format!("list is length {}", list.len()));
    }
    let items: Result<Vec<_>, _> = (first..last).filter_map(|index| list.get(index)).collect();
    items.map(Value::from)
}

fn flatten<'a>(args: &mut [Value<'a>]) -> Outcome<'a> {
    fn extend<'a>(out: &mut Vec<Value<'a>>, list: &List<'a>, depth: i64) -> Result<(), EvaluationError> {
        for item in list.iter() {
            match item? {
                Value::List(inner) if depth > 0 => extend(out, &inner, depth - 1)?,
                item => out.push(item),
            }
            if out.len() > MAX_LIST_LENGTH {
                return Err(EvaluationError::CostLimitExceeded);
            }
        }
        Ok(())
    }
    let (list, depth) = match args {
        [Value::List(list)] => (list, 1),
        [Value::List(list), Value::Int(depth)] => (list, *depth),
        [list] => {
            return Err(EvaluationError::failed(format!("no such overload: {}.flatten()", list.type_name())));
        }
        [list, depth] => {
            let (list, depth) = (list.type_name(), depth.type_name());
            return Err(EvaluationError::failed(format!("no such overload: {list}.flatten({depth})")));
        }
        args => return Err(no_such_overload("flatten", args)),
    };
    if depth < 0 {
        return Err("level must be non-negative".into());
    }
    let mut out = Vec::with_capacity(list.len());
    extend(&mut out, list, depth)?;
    Ok(Value::from(out))
}

/// Sorts a list by its keys, one for each item.
fn sort_by<'a>(list: &List<'a>, keys: &List<'a>) -> Result<Vec<Value<'a>>, EvaluationError> {
    if list.len() != keys.len() {
        return Err(EvaluationError::failed(format!(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, but got {} and {} \
             elements respectively",
            list.len(),
            keys.len()
        )));
    }
    let keys = items(keys)?;
    if let Some(first) = keys.first() {
        if !first.is_comparable() {
            return Err("list elements must be comparable".into());
        }
        if keys.iter().any(|key| key.type_name() != first.type_name()) {
            return Err("list elements must have the same type".into());
        }
    }
    let mut pairs: Vec<_> = keys.into_iter().zip(items(list)?).collect();
    if pairs.iter().any(|(key, _)| matches!(key, Value::Double(key) if key.is_nan())) {
        // NaN has no order. The reference uses an insertion sort, which places an item after the last one that is not
        // greater.
        for end in 1..pairs.len() {
            for place in (1..=end).rev() {
                let greater = match pairs.get(place - 1..=place) {
                    Some([(before, _), (after, _)]) => after.compare(before) == Ok(Ordering::Less),
                    _ => false,
                };
                if !greater {
                    break;
                }
                pairs.swap(place - 1, place);
            }
        }
    } else {
        pairs.sort_by(|(one, _), (other, _)| one.compare(other).unwrap_or(Ordering::Equal));
    }
    Ok(pairs.into_iter().map(|(_, item)| item).collect())
}

fn distinct<'a>(args: &mut [Value<'a>]) -> Outcome<'a> {
    let [Value::List(list)] = args else { return Err(no_such_overload("distinct", args)) };
    let mut out: Vec<Value<'a>> = Vec::new();
    for item in list.iter() {
        let item = item?;
        let mut seen = false;
        for known in &out {
            match item.equal(known) {
                Ok(true) => {
                    seen = true;
                    break;
                }
                Err(error) if error.ends_evaluation() => return Err(error),
                _ => {}
            }
        }
        if !seen {
            out.push(item);
        }
    }
    Ok(Value::from(out))
}
