//! Validates single fields, for many kinds.

use pintle_feature_gates::{Gate, enabled};
use pintle_go_forms::quote;
use pintle_machinery::validation::{is_valid_cidr_for_legacy_field, is_valid_ip_for_legacy_field};
use pintle_machinery::{ErrorList, FieldError, FieldPath, Value, ValueExt};
use std::collections::HashSet;
use std::num::IntErrorKind;

/// Converts the messages of a format check to field errors.
pub(crate) fn invalid_each(path: &FieldPath, value: &str, messages: Vec<String>) -> ErrorList {
    messages.into_iter().map(|message| FieldError::invalid(path, value, message)).collect()
}

/// Validates an address in a field that is older than the strict rules for addresses.
pub(crate) fn legacy_ip(path: &FieldPath, value: &str, old_values: &HashSet<&str>) -> ErrorList {
    is_valid_ip_for_legacy_field(path, value, enabled(Gate::StrictIPCIDRValidation), old_values)
}

/// Validates a block of addresses in a field that is older than the strict rules for addresses.
pub(crate) fn legacy_cidr(path: &FieldPath, value: &str, old_values: &HashSet<&str>) -> ErrorList {
    is_valid_cidr_for_legacy_field(path, value, enabled(Gate::StrictIPCIDRValidation), old_values)
}

/// As [`invalid_each`], for a text of a named type or behind a pointer.
pub(crate) fn invalid_each_of_named_type(path: &FieldPath, value: &str, messages: Vec<String>) -> ErrorList {
    invalid_each(path, value, messages).into_iter().map(FieldError::of_named_type).collect()
}

/// Requires the text.
pub(crate) fn required(object: &Value, field: &str, path: &FieldPath) -> ErrorList {
    if object.str_at(field).is_empty() {
        let path = field.split('.').fold(path.clone(), |path, name| path.child(name));
        return vec![FieldError::required(&path, "")];
    }
    ErrorList::new()
}

/// Requires one of the supported texts of a named type; the message lists them in the given order.
pub(crate) fn supported(value: &str, supported: &[&str], path: &FieldPath) -> ErrorList {
    if supported.contains(&value) {
        return ErrorList::new();
    }
    vec![FieldError::not_supported(path, value, supported)]
}

/// As [`supported`], for a plain text.
pub(crate) fn supported_plain(value: &str, values: &[&str], path: &FieldPath) -> ErrorList {
    supported(value, values, path).into_iter().map(FieldError::of_plain_text).collect()
}

/// Requires the text, and one of the supported ones.
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

/// Parses a 64-bit integer in decimal.
///
/// # Errors
/// The message of Go's `strconv.ParseInt`.
pub(crate) fn parse_int64(text: &str) -> Result<i64, String> {
    text.parse::<i64>().map_err(|error| {
        let why = match error.kind() {
            IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
            _ => "invalid syntax",
        };
        format!("strconv.ParseInt: parsing {}: {why}", quote(text))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_feature_gates::{FeatureGates, testing::override_gates};

    #[test]
    fn older_fields_take_odd_addresses_where_they_are_not_strict() {
        let (old, path) = (HashSet::from(["01.2.3.4"]), FieldPath::default());
        let refused = || {
            let addresses = ["1.2.3.4", "01.2.3.4", "010.0.0.1", "::ffff:1.2.3.4", "x"];
            let blocks = ["10.0.0.0/8", "10.0.0.1/8", "010.0.0.0/8", "10.0.0.0/08", "x"];
            let is_refused = |errors: ErrorList| !errors.is_empty();
            let addresses = addresses.map(|address| is_refused(legacy_ip(&path, address, &old)));
            (addresses, blocks.map(|block| is_refused(legacy_cidr(&path, block, &old))))
        };
        assert_eq!(refused(), ([false, false, true, true, true], [false, true, true, true, true]));
        let _gates = override_gates(&FeatureGates::default().with(Gate::StrictIPCIDRValidation, false));
        assert_eq!(refused(), ([false, false, false, false, true], [false, false, false, false, true]));
    }
}
