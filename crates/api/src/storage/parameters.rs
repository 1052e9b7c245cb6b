//! Validates the driver and its parameters in storage classes and volume attributes classes.

use crate::field_checks::invalid_each;
use pintle_machinery::{ErrorList, FieldError, FieldPath, Map, Value, validation::is_qualified_name};

const MAX_COUNT: usize = 512;
const MAX_SIZE: usize = 256 * 1024;

/// Validates the name of a driver.
pub(super) fn validate_driver(name: &str, path: &FieldPath) -> ErrorList {
    if name.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    let name = pintle_go_forms::to_lower(name);
    invalid_each(path, &name, is_qualified_name(&name))
}

/// Validates parameters.
pub(super) fn validate(parameters: &Map, path: &FieldPath) -> ErrorList {
    if parameters.len() > MAX_COUNT {
        return vec![FieldError::too_long(path, MAX_COUNT)];
    }
    let mut errors = ErrorList::new();
    if parameters.contains_key("") {
        errors.push(FieldError::invalid(path, "", "field can not be empty."));
    }
    if size(parameters) > MAX_SIZE {
        errors.push(FieldError::too_long(path, MAX_SIZE));
    }
    errors
}

/// The total size of keys and values, in bytes.
pub(super) fn size(texts: &Map) -> usize {
    texts.iter().map(|(key, value)| key.len() + value.as_str().map_or(0, str::len)).sum()
}

/// Validates an immutable field.
pub(super) fn validate_kept(object: &Value, old: &Value, field: &str) -> ErrorList {
    let (new, old) = (crate::rules::value_at(object, field), crate::rules::value_at(old, field));
    pintle_machinery::validation::validate_immutable_field(new, old, &FieldPath::new(field))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    #[test]
    fn parameters_have_names_and_are_few() {
        let check = |parameters: Value, wanted: &[&str]| {
            let errors = validate(parameters.as_object().unwrap(), &FieldPath::new("p"));
            let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
            assert_eq!(texts, wanted);
        };
        check(json!({"a": "b"}), &[]);
        check(json!({"": "b"}), &["p: Invalid value: \"\": field can not be empty."]);
        check(json!({"a": "b".repeat(MAX_SIZE)}), &["p: Too long: may not be more than 262144 bytes"]);
        let many: Map = (0..=MAX_COUNT).map(|number| (number.to_string(), "".into())).collect();
        check(many.into(), &["p: Too long: may not be more than 512 bytes"]);
    }
}
