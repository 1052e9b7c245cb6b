//! `==`: by value across number types, deep for lists and maps, by the list type for lists of objects.
//!
//! Values of different types are unequal. For Kubernetes' own types and objects the comparison is an error, which `!=`
//! treats as unequal.

use super::number::{compare_double_int, compare_double_uint, compare_int_uint};
use super::{Json, List, Map, Value};
use crate::EvaluationError;
use crate::escaping::escape;
use crate::schema::{ListType, SchemaKind};
use crate::work;
use std::collections::{HashMap, HashSet};

impl<'a> Value<'a> {
    /// Whether two values are equal in the sense of `==`: the left one determines the comparison.
    ///
    /// # Errors
    /// When the values cannot be compared.
    pub fn equal(&self, other: &Value<'_>) -> Result<bool, EvaluationError> {
        Ok(match (self, other) {
            (Value::Null, other) => matches!(other, Value::Null),
            (_, Value::Null) => false,
            (Value::Bool(one), Value::Bool(other)) => one == other,
            (Value::Int(one), Value::Int(other)) => one == other,
            (Value::Uint(one), Value::Uint(other)) => one == other,
            (Value::Double(one), Value::Double(other)) => one == other,
            (Value::Int(one), Value::Uint(other)) | (Value::Uint(other), Value::Int(one)) => {
                compare_int_uint(*one, *other).is_eq()
            }
            (Value::Double(one), Value::Int(other)) | (Value::Int(other), Value::Double(one)) => {
                !one.is_nan() && compare_double_int(*one, *other).is_eq()
            }
            (Value::Double(one), Value::Uint(other)) | (Value::Uint(other), Value::Double(one)) => {
                !one.is_nan() && compare_double_uint(*one, *other).is_eq()
            }
            (Value::String(one), Value::String(other)) => same_bytes(one.as_bytes(), other.as_bytes()),
            (Value::Bytes(one), Value::Bytes(other)) => same_bytes(one, other),
            (Value::Timestamp(one), Value::Timestamp(other)) => one.compare(*other).is_eq(),
            (Value::Duration(one), Value::Duration(other)) => one == other,
            (Value::Type(one), Value::Type(other)) => one == other,
            (Value::List(one), other) => return one.equal(other),
            (Value::Map(one), other) => return one.equal(other),
            (Value::Object(one), Value::Object(other)) => return one.equal(other),
            (Value::Optional(one), Value::Optional(other)) => match (one, other) {
                (Some(one), Some(other)) => return one.equal(other),
                (one, other) => one.is_none() && other.is_none(),
            },
            (Value::Opaque(one), Value::Opaque(other)) => {
                return one.equal(other).ok_or(EvaluationError::NO_SUCH_OVERLOAD);
            }
            (Value::Opaque(_), _) => return Err(EvaluationError::NO_SUCH_OVERLOAD),
            (Value::Unknown(one), other) => same_json(one, other),
            _ => false,
        })
    }

    /// The identity of a scalar among the items of a set.
    pub(super) fn scalar_key(&self) -> Option<ScalarKey> {
        Some(match self {
            Value::Bool(value) => ScalarKey::Bool(*value),
            Value::Int(value) => ScalarKey::Int(*value),
            Value::Double(value) => ScalarKey::Double(value.to_bits()),
            Value::String(value) => ScalarKey::String(value.as_str().into()),
            _ => return None,
        })
    }
}

/// Compares bytes, counting the work for long equal texts.
fn same_bytes(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && {
        work::note_bytes(one.len());
        one == other
    }
}

/// A scalar by type and value; values of different types are never equal here.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) enum ScalarKey {
    Null,
    Bool(bool),
    Int(i64),
    Double(u64),
    String(Box<str>),
}

impl ScalarKey {
    fn new(json: &Json) -> Option<ScalarKey> {
        Some(match json {
            Json::Null => ScalarKey::Null,
            Json::Bool(value) => ScalarKey::Bool(*value),
            Json::Number(value) => match value.as_i64() {
                Some(value) => ScalarKey::Int(value),
                None => ScalarKey::Double(value.as_f64()?.to_bits()),
            },
            Json::String(value) => ScalarKey::String(value.as_str().into()),
            Json::Array(_) | Json::Object(_) => return None,
        })
    }
}

/// The identity of an item in a list of type `map`.
///
/// Members are looked up by their escaped names although the data has the plain ones, so keys whose names need escaping
/// (`namespace`) do not distinguish items. The reference compares such lists in the same way.
pub(super) fn merge_key(item: &Value<'_>, keys: &[String]) -> Option<Vec<ScalarKey>> {
    let Value::Map(item) = item else { return None };
    let members = item.raw()?;
    let part = |key: &String| {
        let name = escape(key).unwrap_or(key.as_str().into());
        members.get(&name).and_then(ScalarKey::new).unwrap_or(ScalarKey::Null)
    };
    Some(keys.iter().map(part).collect())
}

impl<'a> List<'a> {
    fn equal(&self, other: &Value<'_>) -> Result<bool, EvaluationError> {
        let Some(schema) = self.schema() else {
            let Value::List(other) = other else { return Ok(false) };
            if self.len() != other.len() {
                return Ok(false);
            }
            for (one, other) in self.iter().zip(other.iter()) {
                if differ(one, other)? {
                    return Ok(false);
                }
            }
            return Ok(true);
        };
        let Value::List(other) = other else { return Err(EvaluationError::NO_SUCH_OVERLOAD) };
        if self.len() != other.len() {
            return Ok(false);
        }
        match schema.list_type() {
            ListType::Atomic => {
                for (one, other) in self.iter().zip(other.iter()) {
                    if !one?.equal(&other?)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            ListType::Set => {
                let keys: HashSet<_> = (0..self.len())
                    .filter_map(|index| match self.raw(index) {
                        Some(item) => ScalarKey::new(item),
                        None => self.get(index)?.ok()?.scalar_key(),
                    })
                    .collect();
                let known = |item: Value<'_>| item.scalar_key().is_some_and(|key| keys.contains(&key));
                Ok(other.iter().all(|item| item.is_ok_and(known)))
            }
            ListType::Map(names) => {
                let mut items = HashMap::with_capacity(self.len());
                for item in self.iter() {
                    let item = item?;
                    items.insert(merge_key(&item, names), item);
                }
                for other in other.iter() {
                    let other = other?;
                    let Some(item) = items.get(&merge_key(&other, names)) else { return Ok(false) };
                    if !item.equal(&other)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
        }
    }
}

impl<'a> Map<'a> {
    fn equal(&self, other: &Value<'_>) -> Result<bool, EvaluationError> {
        let (Some(schema), Some(members)) = (self.schema(), self.raw()) else {
            let Value::Map(other) = other else { return Ok(false) };
            if self.len() != other.len() {
                return Ok(false);
            }
            for key in self.keys() {
                let other = match other.find(&key) {
                    Ok(Some(other)) => Ok(other),
                    Err(error) if error.ends_evaluation() => return Err(error),
                    _ => return Ok(false),
                };
                let one = self.find(&key).map(|one| one.unwrap_or(Value::Null));
                if differ(one, other)? {
                    return Ok(false);
                }
            }
            return Ok(true);
        };
        let Value::Map(other) = other else { return Err(EvaluationError::NO_SUCH_OVERLOAD) };
        if self.len() != other.len() {
            return Ok(false);
        }
        let object = schema.kind() == SchemaKind::Object;
        for (key, member) in members {
            if schema.property(key).is_some() {
                let name =
                    if object { escape(key).unwrap_or(key.as_str().into()) } else { key.as_str().into() };
                match (self.find_str(&name)?, other.find_str(&name)?) {
                    (None, None) => {}
                    (Some(one), Some(other)) => {
                        if !one.equal(&other)? {
                            return Ok(false);
                        }
                    }
                    _ => return Ok(false),
                }
            } else {
                // A map without a schema has no fields that nobody declares.
                let declared = other.raw().filter(|_| other.has_schema());
                let Some(other) = declared else { return Err(EvaluationError::NO_SUCH_OVERLOAD) };
                if other.get(key).is_some_and(|other| other != member) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}

/// Whether items of computed lists and maps differ. Errors of items do not make them differ.
fn differ(
    one: Result<Value<'_>, EvaluationError>,
    other: Result<Value<'_>, EvaluationError>,
) -> Result<bool, EvaluationError> {
    let equal = match (one, other) {
        (Ok(one), Ok(other)) => one.equal(&other),
        (Err(error), _) | (_, Err(error)) => Err(error),
    };
    match equal {
        Ok(equal) => Ok(!equal),
        Err(error) if error.ends_evaluation() => Err(error),
        Err(_) => Ok(false),
    }
}

/// Whether data without a schema equals another value.
fn same_json(json: &Json, value: &Value<'_>) -> bool {
    match (json, value) {
        (json, Value::Unknown(other)) => json == *other,
        (Json::Object(members), Value::Map(other)) => other.raw() == Some(members),
        (Json::Array(items), Value::List(other)) => {
            items.len() == other.len()
                && items.iter().enumerate().all(|(index, item)| other.raw(index) == Some(item))
        }
        (json, value) => {
            value.scalar_key().is_some_and(|key| ScalarKey::new(json).is_some_and(|json| json == key))
        }
    }
}
