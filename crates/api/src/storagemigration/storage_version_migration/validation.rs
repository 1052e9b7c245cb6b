//! Validates storage version migrations: one resource, and an end that is final.

use crate::rules;
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, Map, Value, ValueExt,
    validation::{
        FIELD_IMMUTABLE_ERROR, is_dns1035_label, is_dns1123_subdomain, validate_conditions,
        validate_immutable_field,
    },
};

const RESOURCE: &str = "spec.resource.resource";
const GROUP: &str = "spec.resource.group";
const VERSION: &str = "status.resourceVersion";
const CONDITIONS: &str = "status.conditions";
const CONDITION_TYPE: &str = "k8s.io/apimachinery/pkg/apis/meta/v1.Condition";

/// Validates a new migration.
pub(super) fn validate(migration: &Value) -> ErrorList {
    let mut errors = rules::metadata(migration, false);
    let check = |path: &str, check: fn(&str) -> Vec<String>| {
        let text = migration.str_at(path);
        let wrong = check(text);
        (!wrong.is_empty()).then(|| FieldError::invalid(&FieldPath::new(path), text, wrong.join(",")))
    };
    errors.extend(match migration.str_at(RESOURCE) {
        "" => Some(FieldError::required(&FieldPath::new(RESOURCE), "resource is required to be set")),
        _ => check(RESOURCE, is_dns1035_label),
    });
    if !migration.str_at(GROUP).is_empty() {
        errors.extend(check(GROUP, is_dns1123_subdomain));
    }
    errors
}

/// Validates an update: the spec may not change.
pub(super) fn validate_update(migration: &Value, old: &Value) -> ErrorList {
    let mut errors = validate(migration);
    errors.extend(rules::metadata_update(migration, old));
    let (new, old) = (rules::value_at(migration, "spec"), rules::value_at(old, "spec"));
    let shown = format!(
        "{{\"Resource\":{}}}",
        pintle_internal_form::json_form(
            new.at("resource").unwrap_or(&Value::Object(Map::new())),
            "k8s.io/apimachinery/pkg/apis/meta/v1.GroupResource"
        )
    );
    let changed = validate_immutable_field(new, old, &FieldPath::new("spec")).into_iter();
    errors.extend(changed.map(|error| error.shown_as(shown.as_str())));
    errors
}

/// Validates an update of the status.
pub(super) fn validate_status_update(migration: &Value, old: &Value) -> ErrorList {
    let mut errors = rules::metadata_update(migration, old);
    let (version, old_version) = (migration.str_at(VERSION), old.str_at(VERSION));
    let version_path = FieldPath::new(VERSION);
    if !version.is_empty() && !is_resource_version(version) {
        let detail = format!("resource version is not well formed: {version}");
        errors.push(FieldError::invalid(&version_path, version, detail));
    }
    let path = FieldPath::new(CONDITIONS);
    let conditions = migration.items_at(CONDITIONS);
    errors.extend(validate_conditions(conditions, &path));
    if !old_version.is_empty() && old_version != version {
        errors.push(FieldError::invalid(&version_path, version, FIELD_IMMUTABLE_ERROR));
    }
    let mut refuse = |is_wrong: bool, detail: &str| {
        if is_wrong {
            let items: Vec<String> = conditions
                .iter()
                .map(|condition| pintle_internal_form::json_form(condition, CONDITION_TYPE))
                .collect();
            let shown = match migration.at(CONDITIONS) {
                Some(_) => format!("[{}]", items.join(",")),
                None => "null".to_owned(),
            };
            errors
                .push(FieldError::invalid(&path, Value::Array(conditions.to_vec()), detail).shown_as(shown));
        }
    };
    let [succeeded, failed] = ["Succeeded", "Failed"].map(|condition| holds(migration, condition));
    refuse(succeeded && failed, "Both success and failed conditions cannot be true at the same time");
    let reverted = |condition: &str, now: bool| holds(old, condition) && !now;
    refuse(reverted("Succeeded", succeeded), "Success condition cannot be set to false once it is true");
    refuse(reverted("Failed", failed), "Failed condition cannot be set to false once it is true");
    errors
}

/// Whether the first condition of a type is true.
fn holds(migration: &Value, condition_type: &str) -> bool {
    let mut conditions = migration.items_at(CONDITIONS).iter();
    let condition = conditions.find(|condition| condition.str_at("type") == condition_type);
    condition.is_some_and(|condition| condition.str_at("status") == "True")
}

/// A resource version is a positive number of any length.
fn is_resource_version(text: &str) -> bool {
    !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    fn migration(resource: Value, status: Value) -> Value {
        json!({"metadata": {"name": "a", "resourceVersion": "1"}, "spec": {"resource": resource}, "status": status})
    }

    fn messages(errors: &ErrorList) -> Vec<String> {
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_migration_is_of_one_resource() {
        let check = |resource: Value, fields: &[&str]| {
            let errors = validate(&migration(resource, json!({})));
            assert_eq!(errors.iter().map(|error| error.field.as_str()).collect::<Vec<_>>(), fields);
        };
        check(json!({"group": "apps", "resource": "deployments"}), &[]);
        check(json!({"resource": "secrets"}), &[]);
        check(json!({"group": "Bad_"}), &[RESOURCE, GROUP]);
        check(json!({"group": "Bad_", "resource": "X y"}), &[RESOURCE, GROUP]);
        let mut empty = migration(json!({}), json!({}));
        empty.remove_at("spec.resource");
        assert!(
            messages(&validate_update(&empty, &migration(json!({"resource": "secrets"}), json!({}))))
                .contains(
                    &r#"spec: Invalid value: {"Resource":{"group":"","resource":""}}: field is immutable"#
                        .to_owned()
                )
        );
        let new = migration(json!({"group": "apps", "resource": "deployments"}), json!({}));
        let old = migration(json!({"resource": "secrets"}), json!({}));
        assert_eq!(
            messages(&validate_update(&new, &old)),
            [
                r#"spec: Invalid value: {"Resource":{"group":"apps","resource":"deployments"}}: field is immutable"#
            ]
        );
    }

    #[test]
    fn the_end_is_final() {
        let condition = |condition_type: &str| json!({"type": condition_type, "status": "True", "reason": "R", "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z"});
        let check = |new: Value, old: Value, details: &[&str]| {
            let resource = json!({"resource": "secrets"});
            let errors = validate_status_update(&migration(resource.clone(), new), &migration(resource, old));
            assert_eq!(errors.iter().map(|error| error.detail.as_str()).collect::<Vec<_>>(), details);
        };
        let ended = |condition_type: &str| json!({"conditions": [condition(condition_type)]});
        check(ended("Succeeded"), ended("Running"), &[]);
        check(
            ended("Running"),
            ended("Failed"),
            &["Failed condition cannot be set to false once it is true"],
        );
        check(
            json!({"conditions": [condition("Failed"), condition("Succeeded")]}),
            json!({}),
            &["Both success and failed conditions cannot be true at the same time"],
        );
        check(json!({"resourceVersion": "6"}), json!({"resourceVersion": "5"}), &[FIELD_IMMUTABLE_ERROR]);
        check(json!({"resourceVersion": "x"}), json!({}), &["resource version is not well formed: x"]);
    }
}
