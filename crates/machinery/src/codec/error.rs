//! What can be wrong with a body, in the words clients know from Go's decoder.

use std::fmt;

use serde_json::Value;

/// A decoded object, and what strict decoding has to say about it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decoded {
    /// The canonical tree.
    pub value: Value,
    /// Unknown and duplicate fields, in the order they are to be reported.
    pub problems: Vec<StrictProblem>,
}

/// A fault that only strict decoding refuses.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StrictProblem {
    /// A field that the schema does not have; it is not in the tree.
    UnknownField(String),
    /// A field that came twice; objects were merged, of other values the last one counts.
    DuplicateField(String),
    /// A key that came twice in a YAML mapping, in the YAML library's words.
    Yaml(String),
}

impl fmt::Display for StrictProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownField(path) => write!(f, "unknown field {}", quoted(path)),
            Self::DuplicateField(path) => write!(f, "duplicate field {}", quoted(path)),
            Self::Yaml(message) => f.write_str(message),
        }
    }
}

/// Why bytes are no object of the expected type. The text is Go's, without the prefix that a handler adds.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The bytes are not JSON.
    #[error("{0}")]
    Syntax(String),
    /// A value of the wrong JSON type.
    #[error("json: cannot unmarshal {value} into Go {place} of type {ty}")]
    Type {
        /// What was found, such as `string` or `number 1.5`.
        value: String,
        /// `struct field PodSpec.spec.hostname`, or `value` at the top.
        place: String,
        /// The Go type.
        ty: String,
    },
    /// A string that does not parse as what it has to be.
    #[error("{0}")]
    Value(String),
    /// The bytes are not YAML.
    #[error("{0}")]
    Yaml(String),
    /// The value would take far more memory than its bytes.
    #[error("the value takes too much memory")]
    TooHeavy,
    /// The bytes are not a protobuf message of the expected type.
    #[error("{0}")]
    Protobuf(String),
}

impl DecodeError {
    pub(crate) fn value(message: impl Into<String>) -> Box<Self> {
        Box::new(Self::Value(message.into()))
    }

    pub(crate) fn syntax(message: impl Into<String>) -> Box<Self> {
        Box::new(Self::Syntax(message.into()))
    }
}

/// Boxed, since the good case is small and passed through many returns.
pub(crate) type Fallible<T> = Result<T, Box<DecodeError>>;

/// Text in double quotes as Go's `strconv.Quote` writes it.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\x07' => out.push_str("\\a"),
            '\x08' => out.push_str("\\b"),
            '\x0c' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\x0b' => out.push_str("\\v"),
            c if c < ' ' || c == '\x7f' => out.push_str(&format!("\\x{:02x}", c as u32)),
            // Close to Go's idea of printable: no separators but the space, no control characters.
            c if c.is_control() || (c.is_whitespace() && c != ' ') || c == '\u{feff}' => {
                out.push_str(&format!("\\u{:04x}", c as u32));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
