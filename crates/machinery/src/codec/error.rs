//! Decoding errors, with the messages of Go's decoder.

use std::fmt;

use pintle_go_forms::quote;
use pintle_tree::Value;

/// A decoded object, and the problems that strict decoding reports.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decoded {
    /// The canonical tree.
    pub value: Value,
    /// Unknown and duplicate fields, in the order in which they are reported.
    pub problems: Vec<StrictProblem>,
    /// The empty lists and maps in fields of declared types, up to a maximum.
    pub empty_fields: Vec<EmptyField>,
}

/// A list or map that a text gives as `[]` or `{}`. The canonical tree omits it, unless JSON itself tells it from none.
#[derive(Clone, Debug, PartialEq)]
pub struct EmptyField {
    /// The path, as messages write it.
    pub path: String,
    /// The empty list or map.
    pub value: Value,
}

/// A problem that only strict decoding rejects.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StrictProblem {
    /// A field that the schema does not have; it is not in the tree.
    UnknownField(String),
    /// A field that occurs twice. Objects were merged; of other values the last one counts.
    DuplicateField(String),
    /// The keys that occur twice in YAML mappings, as the YAML library reports each.
    Yaml(Vec<String>),
    /// A field of a CBOR map that the schema does not have, by its index in the map.
    UnknownElement(usize),
}

impl StrictProblem {
    /// The warnings about the problem: of duplicate keys one each.
    pub fn warnings(&self) -> Vec<String> {
        match self {
            Self::Yaml(keys) => keys.iter().map(ToString::to_string).collect(),
            _ => vec![self.to_string()],
        }
    }
}

impl fmt::Display for StrictProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownField(path) => write!(f, "unknown field {}", quote(path)),
            Self::DuplicateField(path) => write!(f, "duplicate field {}", quote(path)),
            Self::Yaml(keys) => write!(f, "yaml: unmarshal errors:\n  {}", keys.join("\n  ")),
            Self::UnknownElement(index) => {
                write!(f, "cbor: found unknown field at map element index {index}")
            }
        }
    }
}

/// An error for bytes that are not an object of the expected type. The text is Go's, without the prefix that a handler
/// adds.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The bytes are not JSON.
    #[error("{0}")]
    Syntax(String),
    /// A value of the wrong JSON type.
    #[error("json: cannot unmarshal {value} into Go {place} of type {ty}")]
    Type {
        /// The value found, such as `string` or `number 1.5`.
        value: String,
        /// `struct field PodSpec.spec.hostname`, or `value` at the top.
        place: String,
        /// The Go type.
        ty: String,
    },
    /// A string that does not parse as its type requires.
    #[error("{0}")]
    Value(String),
    /// The bytes are not YAML.
    #[error("{0}")]
    Yaml(String),
    /// The decoded value would take far more memory than its bytes.
    #[error("the value takes too much memory")]
    TooHeavy,
    /// The bytes are not a protobuf message of the expected type.
    #[error("{0}")]
    Protobuf(String),
    /// The bytes are not CBOR, or not of the expected type.
    #[error("{0}")]
    Cbor(String),
}

impl DecodeError {
    pub(crate) fn value(message: impl Into<String>) -> Box<Self> {
        Box::new(Self::Value(message.into()))
    }

    pub(crate) fn cbor(message: impl Into<String>) -> Box<Self> {
        Box::new(Self::Cbor(message.into()))
    }

    pub(crate) fn syntax(message: impl Into<String>) -> Box<Self> {
        Box::new(Self::Syntax(message.into()))
    }
}

/// Boxed to keep the `Ok` case small, since results pass through many returns.
pub(crate) type Fallible<T> = Result<T, Box<DecodeError>>;
