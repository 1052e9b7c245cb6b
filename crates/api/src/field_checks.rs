//! Checks of single fields that many kinds make.

use pintle_machinery::{ErrorList, FieldError, FieldPath, Value, ValueExt};

/// An error for each thing a format check found wrong with a text.
pub(crate) fn invalid_each(path: &FieldPath, value: &str, messages: Vec<String>) -> ErrorList {
    messages.into_iter().map(|message| FieldError::invalid(path, value, message)).collect()
}

/// The text must be there.
pub(crate) fn required(object: &Value, field: &str, path: &FieldPath) -> ErrorList {
    if object.str_at(field).is_empty() {
        let path = field.split('.').fold(path.clone(), |path, name| path.child(name));
        return vec![FieldError::required(&path, "")];
    }
    ErrorList::new()
}

/// The text must be one of those supported, which are listed in the order given.
pub(crate) fn supported(value: &str, supported: &[&str], path: &FieldPath) -> ErrorList {
    if supported.contains(&value) {
        return ErrorList::new();
    }
    vec![FieldError::not_supported(path, value, supported)]
}

/// The text must be there, and one of those supported.
pub(crate) fn required_supported(value: &str, values: &[&str], path: &FieldPath) -> ErrorList {
    if value.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    supported(value, values, path)
}

/// The texts of a list.
pub(crate) fn texts(list: &[Value]) -> impl Iterator<Item = &str> {
    list.iter().map(|item| item.as_str().unwrap_or_default())
}
