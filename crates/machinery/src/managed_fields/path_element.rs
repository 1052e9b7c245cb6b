//! The elements of field paths, and their encoding in `FieldsV1`.

use crate::{Map, Value, error_list::quote};
use std::fmt;

/// One step from a value to a part of it.
#[derive(Debug, Clone, PartialEq)]
pub enum PathElement {
    /// A field of a struct, or a key of a map.
    Field(String),
    /// An item of a list, by the values of its key fields.
    Key(Map),
    /// An item of a set, by its value.
    Value(Value),
    /// An item of a list, by its position.
    Index(i64),
}

impl PathElement {
    /// Reads an encoded element; `None` for one of an unknown kind.
    ///
    /// # Errors
    /// When it is malformed.
    pub fn parse(text: &str) -> Result<Option<PathElement>, String> {
        let (Some(kind), Some(separator)) = (text.as_bytes().first(), text.as_bytes().get(1)) else {
            return Err("key must be 2 characters long:".to_owned());
        };
        let rest = match separator {
            b':' => text.get(2..).unwrap_or_default(),
            _ => return Err(format!("missing colon: {text}")),
        };
        Ok(Some(match kind {
            b'f' => PathElement::Field(rest.to_owned()),
            b'k' => PathElement::Key(serde_json::from_str(rest).map_err(|error| error.to_string())?),
            b'v' => PathElement::Value(serde_json::from_str(rest).map_err(|error| error.to_string())?),
            b'i' => PathElement::Index(rest.parse().map_err(|_| format!("invalid index: {rest}"))?),
            _ => return Ok(None),
        }))
    }
}

impl fmt::Display for PathElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PathElement::Field(name) => write!(f, "f:{name}"),
            PathElement::Key(keys) => {
                f.write_str("k:{")?;
                for (at, (name, value)) in keys.iter().enumerate() {
                    let comma = if at == 0 { "" } else { "," };
                    write!(f, "{comma}{}:{value}", Value::String(name.clone()))?;
                }
                f.write_str("}")
            }
            PathElement::Value(value) => write!(f, "v:{value}"),
            PathElement::Index(index) => write!(f, "i:{index}"),
        }
    }
}

/// The encoded element of a field.
pub(super) fn field(name: &str) -> String {
    let mut element = String::with_capacity(name.len() + 2);
    element.push_str("f:");
    element.push_str(name);
    element
}

/// An encoded element as messages show it.
pub(super) fn display(element: &str) -> String {
    let scalar = |value: &Value| match value {
        Value::String(text) => quote(text),
        value => value.to_string(),
    };
    match PathElement::parse(element) {
        Ok(Some(PathElement::Field(name))) => format!(".{name}"),
        Ok(Some(PathElement::Key(keys))) => {
            let keys: Vec<String> =
                keys.iter().map(|(name, value)| format!("{name}={}", scalar(value))).collect();
            format!("[{}]", keys.join(","))
        }
        Ok(Some(PathElement::Value(value))) => format!("[={}]", scalar(&value)),
        Ok(Some(PathElement::Index(index))) => format!("[{index}]"),
        Ok(None) | Err(_) => element.to_owned(),
    }
}
