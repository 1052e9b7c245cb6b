//! The strategy of priority classes. The system classes have fixed values.

use crate::{field_checks, rules};
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, Value, ValueExt, meta::ObjectMeta, validation::validate_immutable_field,
};
use pintle_registry::{RequestContext, Strategy};

const HIGHEST_USER_VALUE: i64 = 1_000_000_000;
const SYSTEM_PREFIX: &str = "system-";
const SYSTEM_CLASSES: [(&str, i64); 2] =
    [("system-node-critical", 2_000_001_000), ("system-cluster-critical", 2_000_000_000)];

pub(super) struct PriorityClassStrategy;

impl Strategy for PriorityClassStrategy {
    fn set_defaults(&self, object: &mut Value) {
        object.set_default("preemptionPolicy", "PreemptLowerPriority");
    }

    fn prepare_for_create(&self, _context: &RequestContext<'_>, object: &mut Value) {
        object.set("metadata.generation", 1);
    }

    fn validate(&self, _context: &RequestContext<'_>, object: &Value) -> ErrorList {
        validate(object)
    }

    fn validate_update(&self, _context: &RequestContext<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = rules::metadata_update(object, old);
        if value(object) != value(old) {
            errors.push(FieldError::forbidden(&FieldPath::new("value"), "may not be changed in an update."));
        }
        let path = FieldPath::new("preemptionPolicy");
        let policy = |class: &Value| rules::value_at(class, path.as_str()).clone();
        errors.extend(validate_immutable_field(&policy(object), &policy(old), &path));
        errors
    }

    fn check_delete(&self, name: &str) -> Result<(), &'static str> {
        match SYSTEM_CLASSES.iter().any(|(known, _)| *known == name) {
            true => Err("this is a system priority class and cannot be deleted"),
            false => Ok(()),
        }
    }
}

fn value(class: &Value) -> i64 {
    class.i64_at("value").unwrap_or_default()
}

fn validate(object: &Value) -> ErrorList {
    let mut errors = rules::metadata(object, false);
    if object.name().starts_with(SYSTEM_PREFIX) {
        if let Err(why) = check_system_class(object) {
            let detail = format!(
                "priority class names with '{SYSTEM_PREFIX}' prefix are reserved for system use only. error: {why}"
            );
            errors.push(FieldError::forbidden(&FieldPath::new("metadata.name"), detail));
        }
    } else if value(object) > HIGHEST_USER_VALUE {
        let detail = format!("maximum allowed value of a user defined priority is {HIGHEST_USER_VALUE}");
        errors.push(FieldError::forbidden(&FieldPath::new("value"), detail));
    }
    if let Some(policy) = object.at("preemptionPolicy").and_then(Value::as_str) {
        let path = FieldPath::new("preemptionPolicy");
        errors.extend(field_checks::required_supported(policy, &["PreemptLowerPriority", "Never"], &path));
    }
    errors
}

fn check_system_class(object: &Value) -> Result<(), String> {
    let name = object.name();
    let Some((_, expected)) = SYSTEM_CLASSES.into_iter().find(|(known, _)| *known == name) else {
        return Err(format!("{name} is not a known system priority class"));
    };
    if value(object) != expected {
        return Err(format!("value of {name} PriorityClass must be {expected}"));
    }
    if object.bool_at("globalDefault") {
        return Err(format!("globalDefault of {name} PriorityClass must be false"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    #[test]
    fn system_classes_are_not_deleted() {
        for (name, may_be_deleted) in [
            ("system-node-critical", false),
            ("system-cluster-critical", false),
            ("system-other", true),
            ("a", true),
        ] {
            assert_eq!(PriorityClassStrategy.check_delete(name).is_ok(), may_be_deleted, "{name}");
        }
    }

    #[test]
    fn system_values_are_not_for_users() {
        let check = |name: &str, value: i64, messages: &[&str]| {
            let class = json!({"metadata": {"name": name}, "value": value});
            let errors: Vec<String> = validate(&class).iter().map(ToString::to_string).collect();
            assert_eq!(errors, messages);
        };
        check("high", 1_000_000_000, &[]);
        check("system-node-critical", 2_000_001_000, &[]);
        check(
            "high",
            1_000_000_001,
            &["value: Forbidden: maximum allowed value of a user defined priority is 1000000000"],
        );
        check(
            "system-aa",
            10,
            &[
                "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use only. error: system-aa is not a known system priority class",
            ],
        );
    }
}
