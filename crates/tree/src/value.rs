//! A value of a tree.

use std::fmt;
use std::str::FromStr;

use serde_json::Number;

use crate::map::Map;
use crate::text::Text;

/// A JSON value.
///
/// Two values are equal when they have the same type and contents; the integer `1` and the float `1.0` differ.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub enum Value {
    #[default]
    /// Nothing, or an absent member.
    Null,
    /// A boolean.
    Bool(bool),
    /// An integer or a float.
    Number(Number),
    /// A text.
    String(Text),
    /// A list.
    Array(Vec<Value>),
    /// An object.
    Object(Map<Value>),
}

impl Value {
    /// The value at a JSON pointer ([RFC 6901](https://www.rfc-editor.org/rfc/rfc6901)), which is "" or begins with "/".
    pub fn pointer(&self, pointer: &str) -> Option<&Value> {
        if pointer.is_empty() {
            return Some(self);
        }
        pointer.strip_prefix('/')?.split('/').try_fold(self, |value, token| match value {
            Value::Object(members) => members.get(&token.replace("~1", "/").replace("~0", "~")),
            Value::Array(items) if token == "0" || !token.starts_with(['0', '+']) => {
                items.get(token.parse::<usize>().ok()?)
            }
            _ => None,
        })
    }

    /// Whether the value is null.
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// Whether the value is a boolean.
    pub fn is_boolean(&self) -> bool {
        matches!(self, Value::Bool(_))
    }

    /// Whether the value is a number.
    pub fn is_number(&self) -> bool {
        matches!(self, Value::Number(_))
    }

    /// Whether the value is a text.
    pub fn is_string(&self) -> bool {
        matches!(self, Value::String(_))
    }

    /// Whether the value is a list.
    pub fn is_array(&self) -> bool {
        matches!(self, Value::Array(_))
    }

    /// Whether the value is an object.
    pub fn is_object(&self) -> bool {
        matches!(self, Value::Object(_))
    }

    /// Whether the value is an integer that fits in an `i64`.
    pub fn is_i64(&self) -> bool {
        self.as_i64().is_some()
    }

    /// Whether the value is an integer that fits in a `u64`.
    pub fn is_u64(&self) -> bool {
        self.as_u64().is_some()
    }

    /// Whether the value is a number that was written as a float.
    pub fn is_f64(&self) -> bool {
        self.as_number().is_some_and(Number::is_f64)
    }

    /// The boolean.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// The number.
    pub fn as_number(&self) -> Option<&Number> {
        match self {
            Value::Number(number) => Some(number),
            _ => None,
        }
    }

    /// The integer, when it fits.
    pub fn as_i64(&self) -> Option<i64> {
        self.as_number()?.as_i64()
    }

    /// The integer, when it fits.
    pub fn as_u64(&self) -> Option<u64> {
        self.as_number()?.as_u64()
    }

    /// The number as a float, which an integer may round to.
    pub fn as_f64(&self) -> Option<f64> {
        self.as_number()?.as_f64()
    }

    /// The text.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// The items of the list.
    pub fn as_array(&self) -> Option<&Vec<Value>> {
        match self {
            Value::Array(items) => Some(items),
            _ => None,
        }
    }

    /// The items of the list, mutable.
    pub fn as_array_mut(&mut self) -> Option<&mut Vec<Value>> {
        match self {
            Value::Array(items) => Some(items),
            _ => None,
        }
    }

    /// The members of the object.
    pub fn as_object(&self) -> Option<&Map<Value>> {
        match self {
            Value::Object(members) => Some(members),
            _ => None,
        }
    }

    /// The members of the object, mutable.
    pub fn as_object_mut(&mut self) -> Option<&mut Map<Value>> {
        match self {
            Value::Object(members) => Some(members),
            _ => None,
        }
    }

    /// Takes the value and leaves null.
    pub fn take(&mut self) -> Value {
        std::mem::take(self)
    }
}

/// Shows the type beside the value, as derived implementations do.
impl fmt::Debug for Value {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Null => formatter.write_str("Null"),
            Value::Bool(value) => write!(formatter, "Bool({value})"),
            Value::Number(number) => fmt::Debug::fmt(number, formatter),
            Value::String(text) => write!(formatter, "String({text:?})"),
            Value::Array(items) => {
                formatter.write_str("Array ")?;
                fmt::Debug::fmt(items, formatter)
            }
            Value::Object(members) => {
                formatter.write_str("Object ")?;
                fmt::Debug::fmt(members, formatter)
            }
        }
    }
}

/// Writes compact JSON; `{:#}` writes it indented.
impl fmt::Display for Value {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let json = if formatter.alternate() {
            serde_json::to_string_pretty(self)
        } else {
            serde_json::to_string(self)
        };
        formatter.write_str(&json.map_err(|_| fmt::Error)?)
    }
}

/// Reads JSON.
impl FromStr for Value {
    type Err = serde_json::Error;

    fn from_str(json: &str) -> Result<Value, serde_json::Error> {
        serde_json::from_str(json)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    #[test]
    fn texts_and_json_are_those_of_serde_json() {
        let value =
            json!({"b": [1, -2, 1.5, 2.0, "x\n"], "a": {"c": null, "d": true}, "long": "x".repeat(30)});
        let of_serde_json: serde_json::Value = serde_json::from_str(&value.to_string()).unwrap();
        assert_eq!(value.to_string(), of_serde_json.to_string());
        assert_eq!(format!("{value:#}"), format!("{of_serde_json:#}"));
        assert_eq!(format!("{value:?}"), format!("{of_serde_json:?}"));
        assert_eq!(value.to_string().parse::<Value>().unwrap(), value);
        assert_eq!(serde_json::Value::from(value), of_serde_json);
    }

    #[test]
    fn accessors_tell_types_apart() {
        let value = json!({"i": -1, "u": 1, "f": 1.0, "s": "x", "a": [7], "o": {}, "n": null, "b": false});
        assert_eq!((value["i"].as_i64(), value["i"].as_u64()), (Some(-1), None));
        assert_eq!((value["u"].as_i64(), value["u"].as_u64()), (Some(1), Some(1)));
        assert_eq!((value["f"].as_i64(), value["f"].as_f64(), value["f"].is_f64()), (None, Some(1.0), true));
        assert_eq!((value["a"][0].as_i64(), value.get("a").and_then(|items| items.get(1))), (Some(7), None));
        assert_eq!(
            (value["absent"].is_null(), value["a"][9].is_null(), value["s"]["x"].is_null()),
            (true, true, true)
        );
        assert!(value["n"].is_null() && value["b"] == false && value["o"].is_object() && value["s"] == "x");
    }

    #[test]
    fn pointers_are_those_of_serde_json() {
        let value = json!({"a": [{"b/c": 1, "": 2}, null], "m~n": 3, "x": "y"});
        let of_serde_json = serde_json::Value::from(value.clone());
        for pointer in [
            "",
            "/a",
            "/a/0/b~1c",
            "/a/0/",
            "/m~0n",
            "/a/1",
            "/a/2",
            "/a/00",
            "/a/+1",
            "/a/-",
            "a",
            "/x/0",
            "/z",
            "/",
        ] {
            let found = value.pointer(pointer).map(Value::to_string);
            assert_eq!(found, of_serde_json.pointer(pointer).map(ToString::to_string), "{pointer:?}");
        }
    }

    #[test]
    fn writing_through_an_index_makes_members() {
        let mut value = Value::Null;
        value["a"]["b"] = 1.into();
        assert_eq!(value, json!({"a": {"b": 1}}));
        assert_eq!(value["a"].take(), json!({"b": 1}));
        assert_eq!(value, json!({"a": null}));
    }
}
