//! The values of expressions.
//!
//! Values borrow from the object and the program wherever possible. The lifetime `'a` is that of both.

mod adapt;
mod compare;
mod display;
mod equality;
mod join;
mod json;
mod list;
mod map;
mod number;
mod object;
mod opaque;
mod text;
mod time;

pub use list::List;
pub use map::{LazyFields, Map};
pub use object::Object;
pub use opaque::Opaque;
pub use text::Text;
pub use time::Timestamp;

pub(crate) use list::MAX_LIST_LENGTH;
pub(crate) use map::Key;
#[cfg(test)]
pub(crate) use number::decimal;
pub(crate) use number::{double_to_int, double_to_uint, exact_int, exact_uint, shortest};
pub(crate) use time::{Civil, format_duration};

use crate::EvaluationError;
use crate::authorizer::Authorization;
use crate::schema::Schema;
use crate::work;
use std::sync::Arc;

type Json = pintle_machinery::Value;

/// A value of an expression.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Value<'a> {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A whole number: `1`
    Int(i64),
    /// A whole number without a sign: `1u`
    Uint(u64),
    /// A number: `1.0`
    Double(f64),
    /// `"text"`
    String(Text<'a>),
    /// `b"bytes"`
    Bytes(Arc<[u8]>),
    /// A point in time.
    Timestamp(Timestamp),
    /// A number of nanoseconds.
    Duration(i64),
    /// A list.
    List(List<'a>),
    /// A map or an object.
    Map(Map<'a>),
    /// An object that the expression constructs: `Object{}`.
    Object(Object<'a>),
    /// A value or none.
    Optional(Option<Arc<Value<'a>>>),
    /// A type, by its name.
    Type(Text<'a>),
    /// A value of one of Kubernetes' libraries.
    Opaque(Arc<Opaque>),
    /// Data without a schema; it can only be compared.
    Unknown(&'a Json),
}

impl<'a> Value<'a> {
    /// Creates a value from a part of an object and its schema.
    ///
    /// # Errors
    /// When the data does not fit the schema.
    pub fn from_object(json: &'a Json, schema: &'a dyn Schema) -> Result<Value<'a>, EvaluationError> {
        adapt::adapt(json, schema)
    }

    /// Creates a value from JSON without a schema.
    pub fn from_json(json: &'a Json) -> Value<'a> {
        adapt::adapt_untyped(json)
    }

    /// Creates an optional with a value.
    pub fn some(value: Value<'a>) -> Value<'a> {
        Value::Optional(Some(Arc::new(value)))
    }

    /// Creates an optional, with or without a value.
    pub fn optional(value: Option<Value<'a>>) -> Value<'a> {
        Value::Optional(value.map(Arc::new))
    }

    /// Whether a schema determines the types and the comparison of the value's parts.
    pub(crate) fn has_schema(&self) -> bool {
        match self {
            Value::List(list) => list.has_schema(),
            Value::Map(map) => map.has_schema(),
            _ => false,
        }
    }

    /// The value with the types that its JSON determines.
    pub(crate) fn without_schema(&self) -> Value<'a> {
        match self {
            Value::List(list) => Value::List(list.without_schema()),
            Value::Map(map) => Value::Map(map.without_schema()),
            other => other.clone(),
        }
    }

    /// The string, if the value is one.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// The boolean, if the value is one.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// The name of the value's type, as `type()` returns it.
    pub fn type_name(&self) -> &str {
        match self {
            Value::Null => "null_type",
            Value::Bool(_) => "bool",
            Value::Int(_) => "int",
            Value::Uint(_) => "uint",
            Value::Double(_) => "double",
            Value::String(_) => "string",
            Value::Bytes(_) => "bytes",
            Value::Timestamp(_) => "google.protobuf.Timestamp",
            Value::Duration(_) => "google.protobuf.Duration",
            Value::List(_) => "list",
            Value::Map(_) => "map",
            Value::Object(object) => object.type_name(),
            Value::Optional(_) => "optional_type",
            Value::Type(_) => "type",
            Value::Opaque(opaque) => opaque.type_name(),
            Value::Unknown(_) => "unknown",
        }
    }

    /// The name of the reference's implementation type, which some of its messages contain.
    pub(crate) fn implementation_name(&self) -> &'static str {
        match self {
            Value::Null => "types.Null",
            Value::Bool(_) => "types.Bool",
            Value::Int(_) => "types.Int",
            Value::Uint(_) => "types.Uint",
            Value::Double(_) => "types.Double",
            Value::String(_) => "types.String",
            Value::Bytes(_) => "types.Bytes",
            Value::Timestamp(_) => "types.Timestamp",
            Value::Duration(_) => "types.Duration",
            Value::List(_) => "*types.baseList",
            Value::Map(_) => "*types.baseMap",
            Value::Object(object) => object.implementation_name(),
            Value::Optional(_) => "*types.Optional",
            Value::Type(_) => "*types.Type",
            Value::Opaque(opaque) => opaque.implementation_name(),
            Value::Unknown(_) => "*common.unknownPreserved",
        }
    }

    /// The size in the units of costs: characters, bytes, items, entries; 1 for other values.
    pub(crate) fn size(&self) -> u64 {
        self.measure().unwrap_or(match self {
            Value::Optional(Some(value)) => value.size(),
            _ => 1,
        })
    }

    /// The size of a value that has one.
    pub(crate) fn measure(&self) -> Option<u64> {
        let size = match self {
            Value::String(text) => {
                work::note_bytes(text.len());
                text.chars().count()
            }
            Value::Bytes(bytes) => bytes.len(),
            Value::List(list) => list.len(),
            Value::Map(map) => map.len(),
            Value::Opaque(opaque) => opaque.size()?,
            _ => return None,
        };
        Some(size as u64)
    }

    /// Whether the value is the zero value of its type, if the type has one.
    pub(crate) fn is_zero(&self) -> bool {
        match self {
            Value::Null => true,
            Value::Bool(value) => !value,
            Value::Int(value) | Value::Duration(value) => *value == 0,
            Value::Uint(value) => *value == 0,
            Value::Double(value) => *value == 0.0,
            Value::String(text) => text.is_empty(),
            Value::Bytes(bytes) => bytes.is_empty(),
            Value::Timestamp(time) => time.is_zero(),
            // Lists and maps of objects never count as zero.
            Value::List(list) => !list.has_schema() && list.is_empty(),
            Value::Map(map) => !map.has_schema() && map.is_empty(),
            Value::Object(object) => object.is_zero(),
            Value::Optional(_) | Value::Type(_) | Value::Opaque(_) | Value::Unknown(_) => false,
        }
    }
}

impl From<bool> for Value<'_> {
    fn from(value: bool) -> Self {
        Value::Bool(value)
    }
}

impl From<i64> for Value<'_> {
    fn from(value: i64) -> Self {
        Value::Int(value)
    }
}

impl From<u64> for Value<'_> {
    fn from(value: u64) -> Self {
        Value::Uint(value)
    }
}

impl From<f64> for Value<'_> {
    fn from(value: f64) -> Self {
        Value::Double(value)
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Value<'a> {
        Value::String(Text::Borrowed(text))
    }
}

impl From<String> for Value<'_> {
    fn from(text: String) -> Self {
        Value::String(Text::from(text))
    }
}

impl<'a> From<Vec<Value<'a>>> for Value<'a> {
    fn from(items: Vec<Value<'a>>) -> Value<'a> {
        Value::List(List::from(items))
    }
}

impl From<Opaque> for Value<'_> {
    fn from(opaque: Opaque) -> Self {
        Value::Opaque(Arc::new(opaque))
    }
}

impl From<Authorization> for Value<'_> {
    fn from(authorization: Authorization) -> Self {
        Value::from(Opaque::Authorization(authorization))
    }
}
