//! Validates the capacities of devices, which several claims may share.

use crate::{resource::lists::each_unique, resource_list::quantity, rules};
use pintle_machinery::{ErrorList, FieldError, FieldPath, Quantity, Value, ValueExt};

const VALID_VALUES_MAX: usize = 10;

/// Validates a capacity; only a device with multiple allocations may have a sharing policy.
pub(super) fn validate(capacity: &Value, is_shared: bool, path: &FieldPath) -> ErrorList {
    let path = path.child("requestPolicy");
    let Some(policy) = capacity.at("requestPolicy") else { return ErrorList::new() };
    if !is_shared {
        return vec![FieldError::forbidden(&path, "allowMultipleAllocations must be true")];
    }
    let max = quantity(rules::value_at(capacity, "value"));
    let values = policy.items_at("validValues");
    let kind = match (values.is_empty(), policy.at("validRange")) {
        (false, Some(_)) => {
            let detail = "exactly one policy can be specified, cannot specify \"validValues\" and \"validRange\" at the \
                          same time";
            return vec![FieldError::forbidden(&path, detail)];
        }
        (false, None) => "validValues",
        (true, Some(_)) => "validRange",
        (true, None) => return ErrorList::new(),
    };
    let Some(default) = policy.at("default").map(quantity) else {
        return vec![FieldError::required(
            &path.child("default"),
            format!("required when {kind} is defined"),
        )];
    };
    let path = path.child(kind);
    match policy.at("validRange") {
        Some(range) => validate_range(&default, &max, range, &path),
        None => validate_values(&default, &max, values, &path),
    }
}

fn validate_values(default: &Quantity, max: &Quantity, values: &[Value], path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    for (index, pair) in values.windows(2).enumerate() {
        let [one, next] = pair else { continue };
        if quantity(one) > quantity(next) {
            let shown = quantity(next).to_string();
            let detail = "values must be sorted in ascending order";
            errors.push(FieldError::invalid(&path.index(index + 1), shown, detail));
        }
    }
    // Values that round to the same number count as equal.
    let key = |value: &Value| quantity(value).value().to_string().into();
    errors.extend(each_unique(values, VALID_VALUES_MAX, path, key, |value, path| {
        let value = quantity(value);
        if value > *max {
            let detail = format!("option is larger than capacity value: {max}");
            return vec![FieldError::invalid(path, value.to_string(), detail)];
        }
        ErrorList::new()
    }));
    // The default is searched only in lists within the size limit.
    let is_among = values.len() <= VALID_VALUES_MAX && values.iter().any(|value| quantity(value) == *default);
    if !is_among {
        let detail = "default value is not valid according to the requestPolicy";
        errors.push(FieldError::invalid(path, default.to_string(), detail));
    }
    errors
}

fn validate_range(default: &Quantity, capacity: &Quantity, range: &Value, path: &FieldPath) -> ErrorList {
    let Some(min) = range.at("min").map(quantity) else {
        return vec![FieldError::required(&path.child("min"), "required when validRange is defined")];
    };
    let max = range.at("max").map(quantity);
    let mut errors = ErrorList::new();
    let mut refuse = |field: &str, value: &Quantity, detail: String| {
        errors.push(FieldError::invalid(&path.child(field), value.to_string(), detail));
    };
    if min > *capacity {
        refuse("min", &min, format!("min is larger than capacity value: {capacity}"));
    }
    if *default < min {
        refuse("min", default, format!("default is less than min: {min}"));
    }
    if let Some(max) = &max {
        if min > *max {
            refuse("max", &min, format!("min is larger than max: {max}"));
        }
        if *max > *capacity {
            refuse("max", max, format!("max is larger than capacity value: {capacity}"));
        }
        if default > max {
            refuse("max", default, format!("default is more than max: {max}"));
        }
    }
    if let Some(step) = range.at("step").map(quantity) {
        let mut first = min.clone();
        first.add(&step);
        if first > *capacity {
            refuse("step", &step, format!("one step {first} is larger than capacity value: {capacity}"));
        }
        for value in [Some(default), max.as_ref()].into_iter().flatten() {
            // A zero step allows no values.
            let above = value.value().wrapping_sub(min.value());
            if above.checked_rem(step.value()) != Some(0) {
                refuse(
                    "step",
                    value,
                    format!("value is not a multiple of a given step ({step}) from ({min})"),
                );
            }
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    #[test]
    fn parts_fit_the_whole() {
        let check = |policy: Value, expected: &[&str]| {
            let capacity = json!({"value": "10Gi", "requestPolicy": policy});
            let errors = validate(&capacity, true, &FieldPath::new("c"));
            let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
            let expected: Vec<String> =
                expected.iter().map(|error| format!("c.requestPolicy{error}")).collect();
            assert_eq!(errors, expected);
        };
        check(json!({}), &[]);
        check(json!({"default": "1Gi", "validValues": ["1Gi", "2Gi"]}), &[]);
        check(
            json!({"validValues": ["1Gi"]}),
            &[".default: Required value: required when validValues is defined"],
        );
        check(
            json!({"default": "3Gi", "validValues": ["2Gi", "1Gi", "20Gi"]}),
            &[
                r#".validValues[1]: Invalid value: "1Gi": values must be sorted in ascending order"#,
                r#".validValues[2]: Invalid value: "20Gi": option is larger than capacity value: 10Gi"#,
                r#".validValues: Invalid value: "3Gi": default value is not valid according to the requestPolicy"#,
            ],
        );
        check(json!({"default": "2Gi", "validRange": {"min": "1Gi", "max": "3Gi", "step": "1Gi"}}), &[]);
        check(
            json!({"default": "1", "validRange": {}}),
            &[".validRange.min: Required value: required when validRange is defined"],
        );
        check(
            json!({"default": "4Gi", "validRange": {"min": "2Gi", "max": "3Gi", "step": "2Gi"}}),
            &[
                r#".validRange.max: Invalid value: "4Gi": default is more than max: 3Gi"#,
                r#".validRange.step: Invalid value: "3Gi": value is not a multiple of a given step (2Gi) from (2Gi)"#,
            ],
        );
    }

    #[test]
    fn only_shared_devices_are_given_out_in_parts() {
        let errors = validate(&json!({"requestPolicy": {}}), false, &FieldPath::new("c"));
        assert_eq!(
            errors.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["c.requestPolicy: Forbidden: allowMultipleAllocations must be true"]
        );
    }
}
