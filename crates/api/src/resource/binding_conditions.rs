//! Validates the conditions that a pod's binding waits for, and those that end the wait.

use super::lists::each;
use pintle_machinery::{ErrorList, FieldError, FieldPath, Value, ValueExt, validation::validate_label_name};
use std::collections::HashSet;

const CONDITIONS_MAX: usize = 4;
const WANTED: &str = "bindingConditions";
const FAILING: &str = "bindingFailureConditions";

/// Validates the conditions of a device: both kinds or neither, without duplicates.
pub(super) fn validate(device: &Value, path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    for field in [WANTED, FAILING] {
        errors.extend(each(device.items_at(field), CONDITIONS_MAX, &path.child(field), |condition, path| {
            validate_label_name(condition.as_str().unwrap_or_default(), path)
        }));
    }
    let (wanted, failing) = (device.items_at(WANTED), device.items_at(FAILING));
    let all_wanted: HashSet<&Value> = wanted.iter().collect();
    for (field, conditions) in [(WANTED, wanted), (FAILING, failing)] {
        let mut seen = HashSet::new();
        for (index, condition) in conditions.iter().enumerate() {
            let path = path.child(field).index(index);
            if !seen.insert(condition) {
                errors.push(FieldError::duplicate(&path, condition.clone()));
            }
            if field == FAILING && all_wanted.contains(condition) {
                let detail = "bindingFailureConditions must not overlap with bindingConditions";
                errors.push(FieldError::invalid(&path, condition.clone(), detail));
            }
        }
    }
    for (field, other, conditions, others) in
        [(WANTED, FAILING, wanted, failing), (FAILING, WANTED, failing, wanted)]
    {
        if conditions.is_empty() && !others.is_empty() {
            let detail = format!("{field} are required to use {other}");
            errors.push(FieldError::invalid(&path.child(field), Value::Null, detail));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    #[test]
    fn conditions_come_in_pairs() {
        let check = |device: Value, expected: &[&str]| {
            let errors = validate(&device, &FieldPath::new("d"));
            assert_eq!(errors.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
        };
        check(json!({}), &[]);
        check(json!({WANTED: ["a"], FAILING: ["b"]}), &[]);
        check(
            json!({WANTED: ["a"]}),
            &[
                "d.bindingFailureConditions: Invalid value: null: bindingFailureConditions are required to use bindingConditions",
            ],
        );
        check(
            json!({WANTED: ["a", "a"], FAILING: ["a"]}),
            &[
                r#"d.bindingConditions[1]: Duplicate value: "a""#,
                r#"d.bindingFailureConditions[0]: Invalid value: "a": bindingFailureConditions must not overlap with bindingConditions"#,
            ],
        );
    }
}
