//! Validates webhook configurations
//! (<https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/>).

use super::expressions::{PreexistingExpressions, validate_match_conditions};
use super::rule_validation::{OPERATIONS, validate_rule_with_operations};
use crate::field_checks::{supported, texts};
use crate::rules;
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, Value, ValueExt,
    error_list::is_enough,
    validation::{
        LabelSelectorOptions, is_dns1035_label, is_fully_qualified_name, validate_label_selector,
        validate_webhook_service, validate_webhook_url,
    },
};
use std::{collections::HashSet, ops::RangeInclusive};

const FAILURE_POLICIES: [&str; 2] = ["Fail", "Ignore"];
const MATCH_POLICIES: [&str; 2] = ["Equivalent", "Exact"];
const REINVOCATION_POLICIES: [&str; 2] = ["IfNeeded", "Never"];
/// The side effects that a new webhook may declare.
const NO_SIDE_EFFECTS: [&str; 2] = ["None", "NoneOnDryRun"];
/// The side effects that webhooks of the beta versions could declare.
const SIDE_EFFECTS: [&str; 4] = ["None", "NoneOnDryRun", "Some", "Unknown"];
/// The versions of `AdmissionReview` that this server sends.
const REVIEW_VERSIONS: [&str; 2] = ["v1", "v1beta1"];
/// In seconds.
const TIMEOUTS: RangeInclusive<i64> = 1..=30;

/// The rules that a stored configuration may break if it was stored before they existed.
#[derive(Debug)]
struct Options<'v> {
    require_no_side_effects: bool,
    require_recognized_review_version: bool,
    require_unique_names: bool,
    /// Validation of stored expressions is not repeated while no match condition changes.
    ignore_match_conditions: bool,
    allow_invalid_label_value: bool,
    preexisting: PreexistingExpressions<'v>,
}

impl<'v> Options<'v> {
    fn new() -> Options<'v> {
        Options {
            require_no_side_effects: true,
            require_recognized_review_version: true,
            require_unique_names: true,
            ignore_match_conditions: false,
            allow_invalid_label_value: false,
            preexisting: PreexistingExpressions::default(),
        }
    }

    /// The rules that the stored configuration keeps, the update must keep, too.
    fn of_update(configuration: &Value, old: &'v Value) -> Options<'v> {
        let webhooks = old.items_at("webhooks");
        let has_side_effects = |webhook: &Value| !NO_SIDE_EFFECTS.contains(&webhook.str_at("sideEffects"));
        let is_unknown = |webhook: &Value| {
            let versions = webhook.items_at("admissionReviewVersions");
            !versions.is_empty() && !has_recognized_version(versions)
        };
        let mut names = HashSet::new();
        let is_repeated = |webhook: &Value| !names.insert(webhook.str_at("name").to_owned());
        Options {
            require_no_side_effects: !webhooks.iter().any(has_side_effects),
            require_recognized_review_version: !webhooks.iter().any(is_unknown),
            require_unique_names: !webhooks.iter().any(is_repeated),
            ignore_match_conditions: has_same_conditions(configuration.items_at("webhooks"), webhooks),
            allow_invalid_label_value: webhooks.iter().any(has_invalid_selector),
            preexisting: PreexistingExpressions::of_webhooks(webhooks),
        }
    }
}

fn has_same_conditions(new: &[Value], old: &[Value]) -> bool {
    new.len() == old.len()
        && new
            .iter()
            .zip(old)
            .all(|(new, old)| new.items_at("matchConditions") == old.items_at("matchConditions"))
}

/// Validates a new configuration.
pub(super) fn validate_configuration(configuration: &Value) -> ErrorList {
    validate(configuration, &Options::new())
}

/// Validates an update of a configuration.
pub(super) fn validate_configuration_update(configuration: &Value, old: &Value) -> ErrorList {
    validate(configuration, &Options::of_update(configuration, old))
}

fn validate(configuration: &Value, options: &Options<'_>) -> ErrorList {
    let mut errors = rules::accessor_metadata(configuration, false);
    let mut names = HashSet::new();
    for (index, webhook) in configuration.items_at("webhooks").iter().enumerate() {
        if is_enough(&errors) {
            break;
        }
        let path = FieldPath::new("webhooks").index(index);
        validate_webhook(webhook, options, &path, &mut errors);
        let versions = webhook.items_at("admissionReviewVersions");
        validate_review_versions(versions, options, &path.child("admissionReviewVersions"), &mut errors);
        let name = webhook.str_at("name");
        if options.require_unique_names && !name.is_empty() && !names.insert(name) {
            errors.push(FieldError::duplicate(&path.child("name"), name));
        }
    }
    errors
}

fn validate_webhook(webhook: &Value, options: &Options<'_>, path: &FieldPath, errors: &mut ErrorList) {
    errors.extend(is_fully_qualified_name(&path.child("name"), webhook.str_at("name")));
    let rules = path.child("rules");
    for (index, rule) in webhook.items_at("rules").iter().enumerate() {
        if is_enough(errors) {
            return;
        }
        errors.extend(validate_rule_with_operations(rule, OPERATIONS, &rules.index(index)));
    }
    let text = |field: &str| webhook.at(field).and_then(Value::as_str);
    for (field, values) in [("failurePolicy", FAILURE_POLICIES), ("matchPolicy", MATCH_POLICIES)] {
        if let Some(value) = text(field) {
            errors.extend(supported(value, &values, &path.child(field)));
        }
    }
    let side_effects: &[&str] =
        if options.require_no_side_effects { &NO_SIDE_EFFECTS } else { &SIDE_EFFECTS };
    match text("sideEffects") {
        Some(value) => errors.extend(supported(value, side_effects, &path.child("sideEffects"))),
        None => {
            let detail = format!("must specify one of {}", side_effects.join(", "));
            errors.push(FieldError::required(&path.child("sideEffects"), detail));
        }
    }
    if let Some(timeout) = webhook.i64_at("timeoutSeconds")
        && !TIMEOUTS.contains(&timeout)
    {
        let detail = "the timeout value must be between 1 and 30 seconds";
        errors.push(FieldError::invalid(&path.child("timeoutSeconds"), timeout, detail));
    }
    for field in SELECTORS {
        if let Some(selector) = webhook.at(field) {
            let options = LabelSelectorOptions {
                allow_invalid_label_value: options.allow_invalid_label_value,
                ..LabelSelectorOptions::default()
            };
            errors.extend(validate_label_selector(selector, options, &path.child(field)));
        }
    }
    // Only mutating webhooks have it.
    if let Some(value) = text("reinvocationPolicy") {
        errors.extend(supported(value, &REINVOCATION_POLICIES, &path.child("reinvocationPolicy")));
    }
    errors.extend(validate_client_config(webhook, &path.child("clientConfig")));
    if !options.ignore_match_conditions {
        let conditions = webhook.items_at("matchConditions");
        errors.extend(validate_match_conditions(
            conditions,
            &options.preexisting.match_conditions,
            false,
            &path.child("matchConditions"),
        ));
    }
}

const SELECTORS: [&str; 2] = ["namespaceSelector", "objectSelector"];

fn has_invalid_selector(webhook: &Value) -> bool {
    let path = FieldPath::new("selector");
    SELECTORS
        .iter()
        .filter_map(|field| webhook.at(field))
        .any(|selector| !validate_label_selector(selector, LabelSelectorOptions::default(), &path).is_empty())
}

fn validate_client_config(webhook: &Value, path: &FieldPath) -> ErrorList {
    let url = webhook.at("clientConfig.url").and_then(Value::as_str);
    match (url, webhook.at("clientConfig.service")) {
        (Some(url), None) => validate_webhook_url(url, &path.child("url")),
        (None, Some(service)) => validate_webhook_service(service, &path.child("service")),
        _ => vec![FieldError::required(path, "exactly one of url or service is required")],
    }
}

fn validate_review_versions(
    versions: &[Value],
    options: &Options<'_>,
    path: &FieldPath,
    errors: &mut ErrorList,
) {
    if versions.is_empty() {
        let detail = format!("must specify one of {}", REVIEW_VERSIONS.join(", "));
        errors.push(FieldError::required(path, detail));
        return;
    }
    let mut seen = HashSet::new();
    for (index, version) in texts(versions).enumerate() {
        if is_enough(errors) {
            return;
        }
        let path = path.index(index);
        if !seen.insert(version) {
            errors.push(FieldError::invalid(&path, version, "duplicate version"));
            continue;
        }
        for failure in is_dns1035_label(version) {
            errors.push(FieldError::invalid(&path, version, failure));
        }
    }
    if options.require_recognized_review_version && !has_recognized_version(versions) {
        let detail = format!("must include at least one of {}", REVIEW_VERSIONS.join(", "));
        errors.push(FieldError::invalid(path, versions, detail));
    }
}

fn has_recognized_version(versions: &[Value]) -> bool {
    texts(versions).any(|version| REVIEW_VERSIONS.contains(&version))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    fn configuration(changes: Value) -> Value {
        let mut webhook = json!({"name": "a.example.com", "clientConfig": {"url": "https://a"}, "sideEffects": "None",
            "admissionReviewVersions": ["v1"]});
        for (key, value) in changes.as_object().unwrap() {
            webhook.as_object_mut().unwrap().insert(key.clone(), value.clone());
        }
        json!({"metadata": {"name": "c"}, "webhooks": [webhook]})
    }

    fn texts_of(errors: ErrorList) -> Vec<String> {
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn webhooks_are_complete() {
        let check = |changes: Value, expected: &[&str]| {
            assert_eq!(
                texts_of(validate_configuration(&configuration(changes.clone()))),
                expected,
                "{changes}"
            );
        };
        check(json!({}), &[]);
        check(
            json!({"name": "a.b"}),
            &[
                "webhooks[0].name: Invalid value: \"a.b\": should be a domain with at least three segments separated by \
               dots",
            ],
        );
        check(
            json!({"clientConfig": {}}),
            &["webhooks[0].clientConfig: Required value: exactly one of url or service is required"],
        );
        check(
            json!({"sideEffects": null}),
            &["webhooks[0].sideEffects: Required value: must specify one of None, NoneOnDryRun"],
        );
        check(
            json!({"sideEffects": "Some", "failurePolicy": "", "reinvocationPolicy": "x"}),
            &[
                "webhooks[0].failurePolicy: Unsupported value: \"\": supported values: \"Fail\", \"Ignore\"",
                "webhooks[0].sideEffects: Unsupported value: \"Some\": supported values: \"None\", \"NoneOnDryRun\"",
                "webhooks[0].reinvocationPolicy: Unsupported value: \"x\": supported values: \"IfNeeded\", \"Never\"",
            ],
        );
        check(
            json!({"timeoutSeconds": 31}),
            &[
                "webhooks[0].timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds",
            ],
        );
        check(
            json!({"admissionReviewVersions": []}),
            &["webhooks[0].admissionReviewVersions: Required value: must specify one of v1, v1beta1"],
        );
        check(
            json!({"admissionReviewVersions": ["v2", "v2"]}),
            &[
                "webhooks[0].admissionReviewVersions[1]: Invalid value: \"v2\": duplicate version",
                "webhooks[0].admissionReviewVersions: Invalid value: [\"v2\",\"v2\"]: must include at least one of v1, \
                 v1beta1",
            ],
        );
    }

    #[test]
    fn names_are_unique_in_a_configuration() {
        let mut two = configuration(json!({}));
        let webhook = two.items_at("webhooks")[0].clone();
        two.set("webhooks", json!([webhook.clone(), webhook]));
        let expected = ["webhooks[1].name: Duplicate value: \"a.example.com\""];
        assert_eq!(texts_of(validate_configuration(&two)), expected);
        assert!(validate_configuration_update(&two, &two).is_empty());
    }

    #[test]
    fn an_update_may_keep_what_the_stored_object_has() {
        for changes in [
            json!({"sideEffects": "Some"}),
            json!({"admissionReviewVersions": ["v2"]}),
            json!({"matchConditions": [{"name": "a", "expression": "1"}]}),
            json!({"objectSelector": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["a b"]}]}}),
        ] {
            let new = configuration(changes);
            assert!(!validate_configuration_update(&new, &configuration(json!({}))).is_empty(), "{new}");
            assert!(validate_configuration_update(&new, &new).is_empty(), "{new}");
        }
    }
}
