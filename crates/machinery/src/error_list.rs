//! Field validation errors, with the exact messages that clients see.
//!
//! Kinds of error and their texts follow the `field` package of
//! <https://pkg.go.dev/k8s.io/apimachinery/pkg/util/validation/field>.

use crate::codec::json::encode_any;
use crate::text::{escape_html, go_format};
use crate::{FieldPath, StatusCause, Value};
use std::fmt;

use pintle_go_forms::quote;

/// The maximum number of errors of one object that a [`crate::Status`] shows.
pub(crate) const MAX_SHOWN_ERRORS: usize = 1000;
/// The maximum size of the shown errors, in bytes.
pub(crate) const MAX_SHOWN_BYTES: usize = 1024 * 1024;

/// The number of errors after which validation may stop; more than are ever shown.
const ENOUGH_ERRORS: usize = 10_000;

/// The maximum length of a list of names in a message, in bytes.
const MAX_NAMES_LENGTH: usize = 1024;

/// All validation errors of an object, in the order they were found.
pub type ErrorList = Vec<FieldError>;

/// The type of a field error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorType {
    /// A referenced value does not exist.
    NotFound,
    /// A required value is missing.
    Required,
    /// The same value occurs more than once.
    Duplicate,
    /// The value is malformed or out of bounds.
    Invalid,
    /// The value is not one of the allowed values.
    NotSupported,
    /// The value is valid in itself but not allowed here.
    Forbidden,
    /// Too many bytes.
    TooLong,
    /// Too few bytes.
    TooShort,
    /// Too many items.
    TooMany,
    /// Too few items.
    TooFew,
    /// The server failed to check the field.
    Internal,
    /// The value is of another type than the schema's.
    TypeInvalid,
}

impl ErrorType {
    /// The reason in a [`StatusCause`].
    pub fn reason(self) -> &'static str {
        match self {
            ErrorType::NotFound => "FieldValueNotFound",
            ErrorType::Required => "FieldValueRequired",
            ErrorType::Duplicate => "FieldValueDuplicate",
            ErrorType::Invalid => "FieldValueInvalid",
            ErrorType::NotSupported => "FieldValueNotSupported",
            ErrorType::Forbidden => "FieldValueForbidden",
            ErrorType::TooLong => "FieldValueTooLong",
            ErrorType::TooShort => "FieldValueTooShort",
            ErrorType::TooMany => "FieldValueTooMany",
            ErrorType::TooFew => "FieldValueTooFew",
            ErrorType::Internal => "InternalError",
            ErrorType::TypeInvalid => "FieldValueTypeInvalid",
        }
    }

    fn text(self) -> &'static str {
        match self {
            ErrorType::NotFound => "Not found",
            ErrorType::Required => "Required value",
            ErrorType::Duplicate => "Duplicate value",
            ErrorType::Invalid | ErrorType::TypeInvalid => "Invalid value",
            ErrorType::NotSupported => "Unsupported value",
            ErrorType::Forbidden => "Forbidden",
            ErrorType::TooLong => "Too long",
            ErrorType::TooShort => "Too short",
            ErrorType::TooMany => "Too many",
            ErrorType::TooFew => "Too few",
            ErrorType::Internal => "Internal error",
        }
    }

    /// Whether the message contains the value.
    fn shows_value(self) -> bool {
        !matches!(
            self,
            ErrorType::Required
                | ErrorType::Forbidden
                | ErrorType::TooLong
                | ErrorType::TooShort
                | ErrorType::Internal
        )
    }
}

/// One error of one field.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldError {
    /// The type of the error.
    pub error_type: ErrorType,
    /// The path of the field.
    pub field: FieldPath,
    /// The offending value to print; `None` prints none.
    pub bad_value: Option<Value>,
    /// The printed form of the value, if it is not sorted JSON: a struct's members in their declared order.
    pub shown_as: Option<String>,
    /// See [`FieldError::of_named_type`].
    pub is_named_type: bool,
    /// An explanation of the allowed values.
    pub detail: String,
}

impl FieldError {
    fn build(
        error_type: ErrorType,
        field: &FieldPath,
        bad_value: Option<Value>,
        detail: String,
    ) -> FieldError {
        let is_named_type = error_type == ErrorType::NotSupported;
        FieldError { error_type, field: field.clone(), bad_value, shown_as: None, is_named_type, detail }
    }

    /// A referenced value does not exist.
    pub fn not_found(field: &FieldPath, value: impl Into<Value>) -> FieldError {
        Self::build(ErrorType::NotFound, field, Some(value.into()), String::new())
    }

    /// A value is missing.
    pub fn required(field: &FieldPath, detail: impl Into<String>) -> FieldError {
        Self::build(ErrorType::Required, field, None, detail.into())
    }

    /// A value was given twice.
    pub fn duplicate(field: &FieldPath, value: impl Into<Value>) -> FieldError {
        Self::build(ErrorType::Duplicate, field, Some(value.into()), String::new())
    }

    /// A value is malformed.
    pub fn invalid(field: &FieldPath, value: impl Into<Value>, detail: impl Into<String>) -> FieldError {
        Self::build(ErrorType::Invalid, field, Some(value.into()), detail.into())
    }

    /// A value is none of the supported ones; the message lists these in the given order. A text is one of a named type:
    /// nearly all that have choices are.
    pub fn not_supported(field: &FieldPath, value: impl Into<Value>, supported: &[&str]) -> FieldError {
        let detail = match supported {
            [] => String::new(),
            values => {
                let quoted: Vec<String> = values.iter().map(|value| quote(value)).collect();
                format!("supported values: {}", quoted.join(", "))
            }
        };
        Self::build(ErrorType::NotSupported, field, Some(value.into()), detail)
    }

    /// Something may not be set here.
    pub fn forbidden(field: &FieldPath, detail: impl Into<String>) -> FieldError {
        Self::build(ErrorType::Forbidden, field, None, detail.into())
    }

    /// A value has more than `max` bytes.
    pub fn too_long(field: &FieldPath, max: usize) -> FieldError {
        let unit = if max == 1 { "byte" } else { "bytes" };
        Self::build(ErrorType::TooLong, field, None, format!("may not be more than {max} {unit}"))
    }

    /// A list has `actual` items and may have `max`.
    pub fn too_many(field: &FieldPath, actual: usize, max: usize) -> FieldError {
        let unit = if max == 1 { "item" } else { "items" };
        let detail = format!("must have at most {max} {unit}");
        Self::build(ErrorType::TooMany, field, Some(actual.into()), detail)
    }

    /// A list has `actual` items and needs `min`.
    pub fn too_few(field: &FieldPath, actual: usize, min: usize) -> FieldError {
        let unit = if min == 1 { "item" } else { "items" };
        let detail = format!("must have at least {min} {unit}");
        Self::build(ErrorType::TooFew, field, Some(actual.into()), detail)
    }

    /// The server failed while it checked the field.
    pub fn internal(field: &FieldPath, detail: impl Into<String>) -> FieldError {
        Self::build(ErrorType::Internal, field, None, detail.into())
    }

    /// Sets the printed form of the value. A tree's members are sorted, whereas some messages show them in declared
    /// order.
    #[must_use]
    pub fn shown_as(mut self, text: impl Into<String>) -> FieldError {
        self.shown_as = Some(text.into());
        self
    }

    /// Shows a text as JSON (`"\u003ca\u003e"`), as Go does if its type is a named one, such as `core.Protocol` or
    /// `types.UID`, or a pointer.
    #[must_use]
    pub fn of_named_type(mut self) -> FieldError {
        self.is_named_type = true;
        self
    }

    /// Shows a text in Go's quotes (`"<a>"`), as Go does if its type is `string`.
    #[must_use]
    pub fn of_plain_text(mut self) -> FieldError {
        self.is_named_type = false;
        self
    }

    /// The message without the field's path.
    pub fn body(&self) -> String {
        let mut text = self.error_type.text().to_owned();
        if let Some(value) = self.bad_value.as_ref().filter(|_| self.error_type.shows_value()) {
            text.push_str(": ");
            match (&self.shown_as, value) {
                (Some(shown), _) => text.push_str(&escape_html(shown)),
                (None, Value::String(string)) if !self.is_named_type => text.push_str(&quote(string)),
                (None, Value::Number(_)) => text.push_str(&go_format(value)),
                (None, other) => text.push_str(&String::from_utf8_lossy(&encode_any(other))),
            }
        }
        if !self.detail.is_empty() {
            text.push_str(": ");
            text.push_str(&self.detail);
        }
        text
    }

    /// The cause for a [`crate::Status`].
    pub fn cause(&self) -> StatusCause {
        StatusCause {
            reason: self.error_type.reason().to_owned(),
            message: self.body(),
            field: self.field.to_string(),
        }
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.body())
    }
}

/// Whether more errors have been found than a client will be shown; validation of a long list may then stop.
pub fn is_enough(errors: &ErrorList) -> bool {
    errors.len() >= ENOUGH_ERRORS
}

/// Errors that each show a whole list or struct: a client chooses its size and, by another list, their number. The parts
/// that a [`crate::Status`] would not show are not made.
#[derive(Debug, Default)]
pub struct LargeErrors {
    errors: ErrorList,
    bytes: usize,
    is_full: bool,
}

impl LargeErrors {
    /// Adds an error, unless those before it are all that is shown, and one more, which tells that there are more.
    pub fn push(&mut self, error: impl FnOnce() -> FieldError) {
        if self.is_full {
            return;
        }
        let error = error();
        self.is_full = self.bytes > MAX_SHOWN_BYTES || self.errors.len() >= MAX_SHOWN_ERRORS;
        self.bytes += error.body().len();
        self.errors.push(error);
    }

    /// As [`LargeErrors::push`], this number of times.
    pub fn repeat(&mut self, times: usize, error: impl Fn() -> FieldError) {
        for _ in 0..times {
            if self.is_full {
                return;
            }
            self.push(&error);
        }
    }

    /// The errors.
    pub fn into_list(self) -> ErrorList {
        self.errors
    }
}

/// Joins names for a message, up to a maximum length: a client chooses the number of names and of messages.
pub fn join_names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut text = String::new();
    for name in names {
        if !text.is_empty() {
            text.push_str(", ");
        }
        if text.len() + name.len() > MAX_NAMES_LENGTH {
            text.push_str("...");
            break;
        }
        text.push_str(name);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_tree::json;

    #[test]
    fn messages_are_those_of_kubernetes() {
        let path = FieldPath::new("spec").child("ports").index(0).key("a/b");
        let rows = [
            (FieldError::required(&path, ""), "spec.ports[0][a/b]: Required value"),
            (FieldError::invalid(&path, "x\"y", "no"), r#"spec.ports[0][a/b]: Invalid value: "x\"y": no"#),
            (FieldError::invalid(&path, -1, "no"), "spec.ports[0][a/b]: Invalid value: -1: no"),
            (FieldError::invalid(&path, 2.0, "no"), "spec.ports[0][a/b]: Invalid value: 2: no"),
            (FieldError::invalid(&path, 2.5e6, "no"), "spec.ports[0][a/b]: Invalid value: 2.5e+06: no"),
            (
                FieldError::invalid(&path, json!({"a": [1e21, 2.0, "<"]}), ""),
                r#"spec.ports[0][a/b]: Invalid value: {"a":[1e+21,2,"\u003c"]}"#,
            ),
            (FieldError::invalid(&path, Value::Null, "no"), "spec.ports[0][a/b]: Invalid value: null: no"),
            (
                FieldError::invalid(&path, json!({"a": 1}), ""),
                r#"spec.ports[0][a/b]: Invalid value: {"a":1}"#,
            ),
            (FieldError::too_long(&path, 63), "spec.ports[0][a/b]: Too long: may not be more than 63 bytes"),
            (FieldError::too_many(&path, 4, 1), "spec.ports[0][a/b]: Too many: 4: must have at most 1 item"),
            (
                FieldError::not_supported(&path, "A", &["B", "C"]),
                r#"spec.ports[0][a/b]: Unsupported value: "A": supported values: "B", "C""#,
            ),
            // Plain texts have Go's quotes, those of named types are JSON.
            (FieldError::invalid(&path, "<\u{1}", ""), r#"spec.ports[0][a/b]: Invalid value: "<\x01""#),
            (
                FieldError::invalid(&path, "<\u{1}", "").of_named_type(),
                r#"spec.ports[0][a/b]: Invalid value: "\u003c\u0001""#,
            ),
            (
                FieldError::not_supported(&path, "<", &["B"]),
                r#"spec.ports[0][a/b]: Unsupported value: "\u003c": supported values: "B""#,
            ),
            (
                FieldError::not_supported(&path, "<", &["B"]).of_plain_text(),
                r#"spec.ports[0][a/b]: Unsupported value: "<": supported values: "B""#,
            ),
        ];
        for (error, text) in rows {
            assert_eq!(error.to_string(), text);
        }
    }
}
