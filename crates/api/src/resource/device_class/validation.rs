//! Validates device classes.

use crate::{
    core::pod_spec::is_extended,
    resource::{
        configuration::{CONFIG_MAX, validate_configuration, validate_selectors},
        device_selector::SelectorEffort,
        lists::each,
    },
    rules,
};
use pintle_machinery::{ErrorList, FieldError, FieldPath, Value, ValueExt};

/// Validates a new class.
pub(super) fn validate(class: &Value) -> ErrorList {
    let mut errors = rules::metadata_of_any_prefix(class, false);
    errors.extend(validate_spec(class, None));
    errors
}

/// Validates an update of a class.
pub(super) fn validate_update(class: &Value, old: &Value) -> ErrorList {
    let mut errors = rules::metadata_of_any_prefix(class, false);
    errors.extend(rules::metadata_update(class, old));
    errors.extend(validate_spec(class, Some(old)));
    errors
}

fn validate_spec(class: &Value, old: Option<&Value>) -> ErrorList {
    let path = FieldPath::new("spec");
    let is_stored = |field| old.is_some_and(|old| !rules::differs(class, old, field));
    let mut errors = validate_selectors(
        class.items_at("spec.selectors"),
        is_stored("spec.selectors"),
        &path.child("selectors"),
        &SelectorEffort::new(),
    );
    let stored = is_stored("spec.config");
    let config = class.items_at("spec.config");
    errors.extend(each(config, CONFIG_MAX, &path.child("config"), |config, path| {
        validate_configuration(config, stored, path)
    }));
    if let Some(name) = class.at("spec.extendedResourceName").and_then(Value::as_str)
        && !is_extended(name)
    {
        let detail = "must be a valid extended resource name";
        errors.push(FieldError::invalid(&path.child("extendedResourceName"), name, detail));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    #[test]
    fn classes_are_checked() {
        let check = |spec: Value, expected: &[&str]| {
            let errors = validate(&json!({"metadata": {"name": "c"}, "spec": spec}));
            assert_eq!(errors.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
        };
        check(json!({}), &[]);
        check(json!({"extendedResourceName": "example.com/gpu"}), &[]);
        check(json!({"selectors": [{}]}), &["spec.selectors[0].cel: Required value"]);
        check(json!({"config": [{}]}), &["spec.config[0].opaque: Required value"]);
        check(
            json!({"extendedResourceName": "gpu"}),
            &[r#"spec.extendedResourceName: Invalid value: "gpu": must be a valid extended resource name"#],
        );
    }
}
