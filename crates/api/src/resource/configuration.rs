//! Validates selectors of devices and parameters of drivers, in device classes and claims.

use super::{
    device_selector::{self, SelectorEffort},
    lists::each,
    names::validate_driver_name,
};
use pintle_cel::EnvironmentType;
use pintle_machinery::{ErrorList, FieldError, FieldPath, Value, ValueExt};

/// The maximum number of configurations in a list.
pub(super) const CONFIG_MAX: usize = 32;
const SELECTORS_MAX: usize = 32;
/// The maximum size of opaque parameters, in bytes.
pub(super) const PARAMETERS_MAX_LENGTH: usize = 10 * 1024;

/// Validates a list of selectors, within the effort for all selectors of the object. Ratcheting: stored ones may use
/// functions that new ones may not.
pub(super) fn validate_selectors(
    selectors: &[Value],
    stored: bool,
    path: &FieldPath,
    effort: &SelectorEffort,
) -> ErrorList {
    each(selectors, SELECTORS_MAX, path, |selector, path| {
        let path = path.child("cel");
        if selector.at("cel").is_none() {
            return vec![FieldError::required(&path, "")];
        }
        let (expression, path) = (selector.str_at("cel.expression"), path.child("expression"));
        device_selector::validate(expression, EnvironmentType::of(stored), &path, effort)
    })
}

/// Validates a configuration. Ratcheting: stored parameters may have any size.
pub(super) fn validate_configuration(config: &Value, stored: bool, path: &FieldPath) -> ErrorList {
    let path = path.child("opaque");
    let Some(opaque) = config.at("opaque") else {
        return vec![FieldError::required(&path, "")];
    };
    let mut errors = validate_driver_name(opaque.str_at("driver"), &path.child("driver"));
    let max_length = if stored { usize::MAX } else { PARAMETERS_MAX_LENGTH };
    errors.extend(validate_raw(opaque.at("parameters"), max_length, &path.child("parameters")));
    errors
}

/// Validates opaque parameters.
pub(super) fn validate_raw(raw: Option<&Value>, max_length: usize, path: &FieldPath) -> ErrorList {
    let Some(raw) = raw else {
        return vec![FieldError::required(path, "")];
    };
    if raw.to_string().len() > max_length {
        return vec![FieldError::too_long(path, max_length)];
    }
    if !raw.is_object() {
        return vec![FieldError::invalid(path, "<value omitted>", "must be a valid JSON object")];
    }
    ErrorList::new()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    #[test]
    fn configurations_are_for_a_driver() {
        let check = |config: Value, expected: &[&str]| {
            let errors = validate_configuration(&config, false, &FieldPath::new("c"));
            assert_eq!(errors.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
        };
        check(json!({"opaque": {"driver": "a", "parameters": {}}}), &[]);
        check(json!({}), &["c.opaque: Required value"]);
        check(
            json!({"opaque": {"driver": "a", "parameters": null}}),
            &["c.opaque.parameters: Required value"],
        );
        check(
            json!({"opaque": {"parameters": [1]}}),
            &[
                "c.opaque.driver: Required value",
                r#"c.opaque.parameters: Invalid value: "<value omitted>": must be a valid JSON object"#,
            ],
        );
        let long = json!({"opaque": {"driver": "a", "parameters": {"a": "x".repeat(PARAMETERS_MAX_LENGTH)}}});
        check(long.clone(), &["c.opaque.parameters: Too long: may not be more than 10240 bytes"]);
        assert_eq!(validate_configuration(&long, true, &FieldPath::new("c")), []);
    }
}
