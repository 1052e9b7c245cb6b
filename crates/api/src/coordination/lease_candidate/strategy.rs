//! The strategy of candidates.

use super::version::Version;
use crate::{field_checks, rules};
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, Value, ValueExt,
    validation::{
        is_config_map_key, is_qualified_name, validate_immutable_text, validate_object_meta_accessor,
    },
};
use pintle_registry::{RequestContext, Strategy};

/// The strategy that Kubernetes defines itself: the oldest emulation version wins.
const OLDEST_EMULATION_VERSION: &str = "OldestEmulationVersion";

pub(super) struct LeaseCandidateStrategy;

impl Strategy for LeaseCandidateStrategy {
    fn validate(&self, _context: &RequestContext<'_>, object: &Value) -> ErrorList {
        let name = |name: &str, _: bool| is_config_map_key(name);
        let mut errors = validate_object_meta_accessor(object, true, name, &FieldPath::new("metadata"));
        errors.extend(validate_spec(object));
        errors
    }

    fn validate_update(&self, _context: &RequestContext<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = rules::accessor_metadata_update(object, old);
        errors.extend(validate_spec(object));
        errors.extend(validate_immutable_text(object, old, &FieldPath::new("spec.leaseName")));
        errors
    }

    fn allow_create_on_update(&self) -> bool {
        true
    }

    fn allow_unconditional_update(&self) -> bool {
        false
    }
}

fn validate_spec(object: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let (lease, emulation_path) = (FieldPath::new("spec.leaseName"), FieldPath::new("spec.emulationVersion"));
    let (binary_path, strategy_path) =
        (FieldPath::new("spec.binaryVersion"), FieldPath::new("spec.strategy"));
    if object.str_at(lease.as_str()).is_empty() {
        errors.push(FieldError::required(&lease, ""));
    }
    let mut read = |path: &FieldPath| {
        let text = object.str_at(path.as_str());
        let version = Version::parse(text);
        if version.is_none() && !text.is_empty() {
            errors.push(FieldError::invalid(path, text, "must be a valid semantic version"));
        }
        // A malformed version counts as 0.0.0 below.
        version.unwrap_or_default()
    };
    let emulation = read(&emulation_path);
    let binary = read(&binary_path);
    let (emulation_text, binary_text) =
        (object.str_at(emulation_path.as_str()), object.str_at(binary_path.as_str()));
    if binary_text.is_empty() {
        errors.push(FieldError::required(&binary_path, ""));
    } else if !emulation_text.is_empty() && binary < emulation {
        let detail = "must be greater than or equal to `emulationVersion`";
        errors.push(FieldError::invalid(&binary_path, binary_text, detail));
    }
    let strategy = object.str_at(strategy_path.as_str());
    if strategy.is_empty() {
        errors.push(FieldError::required(&strategy_path, ""));
        return errors;
    }
    if strategy == OLDEST_EMULATION_VERSION && emulation.is_zero() {
        let detail = "must be specified when `strategy` is 'OldestEmulationVersion'";
        errors.push(FieldError::required(&emulation_path, detail));
    }
    errors.extend(validate_strategy(strategy, &strategy_path.child("strategy")));
    errors
}

/// Requires one of Kubernetes' own strategies or a name with a domain prefix.
pub(in crate::coordination) fn validate_strategy(strategy: &str, path: &FieldPath) -> ErrorList {
    match strategy.contains('/') {
        true => field_checks::invalid_each_of_named_type(path, strategy, is_qualified_name(strategy)),
        false if strategy == OLDEST_EMULATION_VERSION => ErrorList::new(),
        false => vec![FieldError::not_supported(path, strategy, &[OLDEST_EMULATION_VERSION])],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    #[test]
    fn candidates_say_for_what_they_stand_and_as_what() {
        let check = |spec: Value, expected: &[&str]| {
            let errors = validate_spec(&json!({"spec": spec}));
            let messages: Vec<String> = errors.iter().map(ToString::to_string).collect();
            assert_eq!(messages, expected, "{spec}");
        };
        let good = json!({
            "leaseName": "l", "binaryVersion": "1.36.0", "emulationVersion": "1.35.0", "strategy": "OldestEmulationVersion",
        });
        let with = |field: &str, value: &str| {
            let mut spec = good.clone();
            spec[field] = value.into();
            spec
        };
        check(good.clone(), &[]);
        check(with("strategy", "example.com/mine"), &[]);
        check(
            json!({}),
            &[
                "spec.leaseName: Required value",
                "spec.binaryVersion: Required value",
                "spec.strategy: Required value",
            ],
        );
        check(
            with("strategy", "Newest"),
            &[
                "spec.strategy.strategy: Unsupported value: \"Newest\": supported values: \"OldestEmulationVersion\"",
            ],
        );
        check(
            with("emulationVersion", ""),
            &[
                "spec.emulationVersion: Required value: must be specified when `strategy` is 'OldestEmulationVersion'",
            ],
        );
        check(
            with("emulationVersion", "1.37.0"),
            &[
                "spec.binaryVersion: Invalid value: \"1.36.0\": must be greater than or equal to `emulationVersion`",
            ],
        );
        check(
            with("binaryVersion", "v1.36"),
            &[
                "spec.binaryVersion: Invalid value: \"v1.36\": must be a valid semantic version",
                "spec.binaryVersion: Invalid value: \"v1.36\": must be greater than or equal to `emulationVersion`",
            ],
        );
    }
}
