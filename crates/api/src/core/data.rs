//! Rules that config maps and secrets share: keyed data that may be immutable.

use crate::{field_checks, rules};
use base64::{Engine, engine::general_purpose::STANDARD};
use pintle_machinery::{ErrorList, FieldError, FieldPath, Value, ValueExt, validation::is_config_map_key};
use pintle_registry::EmptyFields;

/// The maximum total size of the values, in bytes.
pub(super) const MAX_SIZE: usize = 1024 * 1024;

const IMMUTABLE: &str = "field is immutable when `immutable` is set";

/// Validates a key, which becomes a file name.
pub(super) fn validate_key(key: &str, path: &FieldPath) -> ErrorList {
    field_checks::invalid_each(&path.key(key), key, is_config_map_key(key))
}

/// A member with data.
pub(super) struct Member {
    pub(super) name: &'static str,
    /// Whether the default is the empty map, so that an absent one equals it.
    pub(super) is_empty_by_default: bool,
}

/// Once `immutable` is set, rejects changes of it and of the data. Empty data in the body is a change where the stored
/// object has none, unless that is the default.
pub(super) fn validate_immutable(
    object: &Value,
    old: &Value,
    members: &[Member],
    empty_fields: &EmptyFields,
) -> ErrorList {
    let mut errors = ErrorList::new();
    if !old.bool_at("immutable") {
        return errors;
    }
    if !object.bool_at("immutable") {
        errors.push(FieldError::forbidden(&FieldPath::new("immutable"), IMMUTABLE));
    }
    for Member { name, is_empty_by_default } in members {
        let becomes_empty = || !is_empty_by_default && old.at(name).is_none() && empty_fields.contains(name);
        if rules::differs(object, old, name) || becomes_empty() {
            errors.push(FieldError::forbidden(&FieldPath::new(name), IMMUTABLE));
        }
    }
    errors
}

/// The number of bytes that a base64 text encodes.
pub(super) fn decoded_len(value: &Value) -> usize {
    let text = value.as_str().unwrap_or_default();
    let padding = text.bytes().rev().take_while(|byte| *byte == b'=').count();
    (text.len() / 4 * 3).saturating_sub(padding)
}

/// The bytes of a base64 text.
pub(super) fn decoded(value: &Value) -> Vec<u8> {
    STANDARD.decode(value.as_str().unwrap_or_default()).unwrap_or_default()
}

/// A text's bytes in base64.
pub(super) fn encoded(text: &str) -> Value {
    STANDARD.encode(text).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::{codec::EmptyField, json};

    #[test]
    fn data_that_becomes_empty_is_a_change() {
        let old = json!({"immutable": true, "data": {"a": "1"}});
        let empty_fields = EmptyFields::default();
        let check_of = |object: &Value, old: &Value| {
            let members = [
                Member { name: "data", is_empty_by_default: true },
                Member { name: "binaryData", is_empty_by_default: false },
            ];
            let errors = validate_immutable(object, old, &members, &empty_fields);
            errors.iter().map(|error| error.field.to_string()).collect::<Vec<_>>()
        };
        let check = |object: &Value| check_of(object, &old);
        assert_eq!(check(&old), [""; 0]);
        assert_eq!(check(&json!({"data": {"a": "2"}})), ["immutable", "data"]);
        empty_fields.set(vec![EmptyField { path: "binaryData".to_owned(), value: json!({}) }]);
        assert_eq!(check(&old), ["binaryData"]);
        let without = json!({"immutable": true});
        empty_fields.set(vec![EmptyField { path: "data".to_owned(), value: json!({}) }]);
        assert_eq!(check_of(&without, &without), [""; 0]);
    }

    #[test]
    fn lengths_are_those_of_the_bytes() {
        for text in ["", "a", "ab", "abc", "abcd"] {
            let value = encoded(text);
            assert_eq!((decoded_len(&value), decoded(&value)), (text.len(), text.as_bytes().to_vec()));
        }
    }
}
