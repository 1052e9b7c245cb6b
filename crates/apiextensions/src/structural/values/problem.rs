//! The problems of values, with the messages of the reference.

use pintle_go_forms::quote;
use pintle_machinery::text::go_format;
use pintle_machinery::{ErrorType, FieldError, FieldPath, Value};

use crate::structural::number::to_json;
use crate::structural::path::Path;

/// An error without the position of its value in an object.
pub(super) struct Problem {
    /// The identity of the problem: problems with equal texts are reported once.
    pub(super) message: String,
    kind: Kind,
}

enum Kind {
    /// Concerns the value at a path; the detail is the message unless given.
    At { path: String, error_type: ErrorType, value: Option<Value>, detail: Option<String> },
    /// Concerns no path, since the message contains it.
    Anywhere,
}

impl Problem {
    /// A problem at the path, with the message as its detail.
    fn at(path: &Path<'_>, error_type: ErrorType, value: impl Into<Value>, message: String) -> Problem {
        let kind = Kind::At { path: path.to_string(), error_type, value: Some(value.into()), detail: None };
        Problem { message, kind }
    }

    fn invalid(path: &Path<'_>, value: impl Into<Value>, rest: &str) -> Problem {
        Problem::at(path, ErrorType::Invalid, value, format!("{path} in body {rest}"))
    }

    pub(super) fn wrong_type(path: &Path<'_>, expected: &str, found: &str) -> Problem {
        let message = format!("{path} in body must be of type {expected}: {}", quote(found));
        Problem::at(path, ErrorType::TypeInvalid, found, message)
    }

    pub(super) fn wrong_format(path: &Path<'_>, format: &str, text: &str) -> Problem {
        Problem::wrong_type(path, format, text)
    }

    pub(super) fn alternatives(path: &Path<'_>, rest: &str) -> Problem {
        Problem { message: format!("{} {rest}", quote(&path.to_string())), kind: Kind::Anywhere }
    }

    pub(super) fn out_of_range(what: &str, ty: &str, format: Option<&str>, path: &Path<'_>) -> Problem {
        let message = match format {
            Some(format) => format!("{what} value must be of type {ty} with format {format} in {path}"),
            None => format!("{what} value must be of type {ty} (default format) in {path}"),
        };
        Problem { message, kind: Kind::Anywhere }
    }

    pub(super) fn beyond_limit(path: &Path<'_>, value: &Value, rest: &str, limit: &Value) -> Problem {
        Problem::invalid(path, value.clone(), &format!("should be {rest} {}", go_format(limit)))
    }

    pub(super) fn factor_not_positive(path: &Path<'_>, factor: &Value) -> Problem {
        let message =
            format!("factor MultipleOf declared for {path} must be positive: {}", go_format(factor));
        Problem::at(path, ErrorType::Invalid, factor.clone(), message)
    }

    pub(super) fn too_long(path: &Path<'_>, max: i64) -> Problem {
        let message = format!("{path} in body should be at most {max} chars long");
        let unit = if max == 1 { "byte" } else { "bytes" };
        let detail = Some(match max {
            ..0 => "value is too long".to_owned(),
            max => format!("may not be more than {max} {unit}"),
        });
        let kind = Kind::At { path: path.to_string(), error_type: ErrorType::TooLong, value: None, detail };
        Problem { message, kind }
    }

    pub(super) fn too_short(path: &Path<'_>, min: i64, text: &str) -> Problem {
        Problem::invalid(path, text, &format!("should be at least {min} chars long"))
    }

    pub(super) fn no_match(path: &Path<'_>, pattern: &str, text: &str) -> Problem {
        Problem::invalid(path, text, &format!("should match '{pattern}'"))
    }

    pub(super) fn too_few(path: &Path<'_>, size: i64, min: i64, unit: &str) -> Problem {
        Problem::invalid(path, size, &format!("should have at least {min} {unit}"))
    }

    pub(super) fn too_many(path: &Path<'_>, size: i64, max: i64, unit: &str) -> Problem {
        let message = format!("{path} in body should have at most {max} {unit}");
        let items = if max == 1 { "item" } else { "items" };
        let kind = Kind::At {
            path: path.to_string(),
            error_type: ErrorType::TooMany,
            value: Some(size.into()),
            detail: Some(format!("must have at most {max} {items}")),
        };
        Problem { message, kind }
    }

    pub(super) fn not_unique(path: &Path<'_>) -> Problem {
        Problem::invalid(path, "", "shouldn't contain duplicates")
    }

    pub(super) fn not_in_enum(path: &Path<'_>, value: &Value, values: &[Value]) -> Problem {
        let message = format!("{path} in body should be one of {}", go_format(&Value::from(values)));
        let supported: Vec<String> = values
            .iter()
            .map(|value| match value {
                Value::String(text) => quote(text),
                other => quote(&to_json(other)),
            })
            .collect();
        let kind = Kind::At {
            path: path.to_string(),
            error_type: ErrorType::NotSupported,
            value: Some(value.clone()),
            detail: Some(format!("supported values: {}", supported.join(", "))),
        };
        Problem { message, kind }
    }

    pub(super) fn forbidden(path: &Path<'_>, name: &str) -> Problem {
        let message = format!("{path}.{name} in body is a forbidden property");
        Problem::at(path, ErrorType::Invalid, name, message)
    }

    pub(super) fn required(path: &Path<'_>) -> Problem {
        let message = format!("{path} in body is required");
        let kind = Kind::At {
            path: path.to_string(),
            error_type: ErrorType::Required,
            value: None,
            detail: Some(String::new()),
        };
        Problem { message, kind }
    }

    /// The approximate size in bytes.
    pub(super) fn size(&self) -> usize {
        const ITSELF: usize = 256;
        let rest = match &self.kind {
            Kind::Anywhere => 0,
            Kind::At { path, value, detail, .. } => {
                let value = match value {
                    Some(Value::String(text)) => text.len(),
                    _ => 0,
                };
                path.len() + value + detail.as_ref().map_or(0, String::len)
            }
        };
        ITSELF + self.message.len() + rest
    }

    /// The error for clients; the prefix is put before its path.
    pub(super) fn into_error(self, prefix: &FieldPath) -> FieldError {
        match self.kind {
            Kind::Anywhere => FieldError::invalid(prefix, "", self.message),
            Kind::At { path, error_type, value, detail } => {
                let field = match path.strip_prefix('.').unwrap_or(&path) {
                    "" => prefix.clone(),
                    path => prefix.child(path),
                };
                let detail = detail.unwrap_or(self.message);
                FieldError {
                    error_type,
                    field,
                    bad_value: value,
                    shown_as: None,
                    is_named_type: false,
                    detail,
                }
            }
        }
    }
}
