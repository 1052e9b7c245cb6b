//! Validates the policies by which a job fails or succeeds before all its pods have ended.

use super::indexes;
use crate::{field_checks, rules};
use pintle_go_forms::quote;
use pintle_machinery::{ErrorList, FieldError, FieldPath, Value, ValueExt, validation::is_qualified_name};
use std::collections::HashSet;

const MAX_RULES: usize = 20;
const MAX_EXIT_CODES: usize = 255;
const MAX_PATTERNS: usize = 20;
const MAX_INDEXES_LENGTH: usize = 64 * 1024;
const ACTIONS: [&str; 4] = ["Count", "FailIndex", "FailJob", "Ignore"];
const OPERATORS: [&str; 2] = ["In", "NotIn"];
const STATUSES: [&str; 3] = ["False", "True", "Unknown"];

/// Validates `podFailurePolicy`.
pub(super) fn validate_pod_failure_policy(spec: &Value, path: &FieldPath) -> ErrorList {
    let rules = spec.items_at("podFailurePolicy.rules");
    let path = path.child("rules");
    let mut errors = ErrorList::new();
    if rules.len() > MAX_RULES {
        errors.push(FieldError::too_many(&path, rules.len(), MAX_RULES));
    }
    for (index, rule) in rules.iter().enumerate() {
        errors.extend(validate_failure_rule(spec, rule, &path.index(index)));
    }
    errors
}

fn validate_failure_rule(spec: &Value, rule: &Value, path: &FieldPath) -> ErrorList {
    let action_path = path.child("action");
    let action = rule.str_at("action");
    let mut errors = match action {
        "FailIndex" if spec.at("backoffLimitPerIndex").is_none() => {
            let detail = "requires the backoffLimitPerIndex to be set";
            vec![FieldError::invalid(&action_path, action, detail)]
        }
        _ => validate_choice(action, &ACTIONS, &action_path),
    };
    let exit_codes = rule.at("onExitCodes");
    if let Some(exit_codes) = exit_codes {
        errors.extend(validate_exit_codes(spec, exit_codes, &path.child("onExitCodes")));
    }
    let conditions = rule.items_at("onPodConditions");
    errors.extend(validate_conditions(conditions, &path.child("onPodConditions")));
    let which = match (exit_codes.is_some(), conditions.is_empty()) {
        (true, false) => "specifying both OnExitCodes and OnPodConditions is not supported",
        (false, true) => "specifying one of OnExitCodes and OnPodConditions is required",
        _ => return errors,
    };
    errors.push(rules::invalid_whole(path, which));
    errors
}

fn validate_choice(value: &str, choices: &[&str], path: &FieldPath) -> ErrorList {
    if value.is_empty() {
        let quoted: Vec<String> = choices.iter().map(|choice| quote(choice)).collect();
        return vec![FieldError::required(path, format!("valid values: [{}]", quoted.join(" ")))];
    }
    field_checks::supported(value, choices, path)
}

fn validate_exit_codes(spec: &Value, exit_codes: &Value, path: &FieldPath) -> ErrorList {
    let operator = exit_codes.str_at("operator");
    let mut errors = validate_choice(operator, &OPERATORS, &path.child("operator"));
    if let Some(name) = exit_codes.at("containerName").and_then(Value::as_str) {
        let mut containers = ["template.spec.containers", "template.spec.initContainers"]
            .into_iter()
            .flat_map(|path| spec.items_at(path));
        if !containers.any(|container| container.str_at("name") == name) {
            let detail = "must be one of the container or initContainer names in the pod template";
            errors.push(FieldError::invalid(&path.child("containerName"), name, detail));
        }
    }
    let values = exit_codes.items_at("values");
    let path = path.child("values");
    if values.is_empty() {
        errors.push(FieldError::invalid(
            &path,
            rules::value_at(exit_codes, "values").clone(),
            "at least one value is required",
        ));
    } else if values.len() > MAX_EXIT_CODES {
        errors.push(FieldError::too_many(&path, values.len(), MAX_EXIT_CODES));
    }
    let mut seen: HashSet<i64> = HashSet::new();
    let mut previous = None;
    let mut is_ordered = true;
    for (index, value) in values.iter().map(|value| value.as_i64().unwrap_or_default()).enumerate() {
        let path = path.index(index);
        if operator == "In" && value == 0 {
            errors.push(FieldError::invalid(&path, value, "must not be 0 for the In operator"));
        }
        if !seen.insert(value) {
            errors.push(FieldError::duplicate(&path, value));
        }
        is_ordered &= previous.replace(value).is_none_or(|previous| previous <= value);
    }
    if !is_ordered {
        errors.push(FieldError::invalid(&path, values.to_vec(), "must be ordered"));
    }
    errors
}

fn validate_conditions(patterns: &[Value], path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    if patterns.len() > MAX_PATTERNS {
        errors.push(FieldError::too_many(path, patterns.len(), MAX_PATTERNS));
    }
    for (index, pattern) in patterns.iter().enumerate() {
        let path = path.index(index);
        let condition = pattern.str_at("type");
        errors.extend(field_checks::invalid_each(
            &path.child("type"),
            condition,
            is_qualified_name(condition),
        ));
        errors.extend(validate_choice(pattern.str_at("status"), &STATUSES, &path.child("status")));
    }
    errors
}

/// Validates `successPolicy` of an indexed job.
pub(super) fn validate_success_policy(spec: &Value, path: &FieldPath) -> ErrorList {
    let rules = spec.items_at("successPolicy.rules");
    let path = path.child("rules");
    let mut errors = ErrorList::new();
    if rules.is_empty() {
        let detail = "at least one rules must be specified when the successPolicy is specified";
        errors.push(FieldError::required(&path, detail));
    }
    if rules.len() > MAX_RULES {
        errors.push(FieldError::too_many(&path, rules.len(), MAX_RULES));
    }
    let completions = spec.i64_at("completions").unwrap_or_default();
    for (index, rule) in rules.iter().enumerate() {
        errors.extend(validate_success_rule(rule, completions, &path.index(index)));
    }
    errors
}

fn validate_success_rule(rule: &Value, completions: i64, path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    let indexes = rule.at("succeededIndexes").and_then(Value::as_str);
    let count = rule.i64_at("succeededCount");
    if indexes.is_none() && count.is_none() {
        let detail = "at least one of succeededCount or succeededIndexes must be specified";
        errors.push(FieldError::required(path, detail));
    }
    let mut total = 0;
    if let Some(indexes) = indexes {
        let path = path.child("succeededIndexes");
        if indexes.len() > MAX_INDEXES_LENGTH {
            errors.push(FieldError::too_long(&path, MAX_INDEXES_LENGTH));
        }
        match indexes::count(indexes, completions) {
            Ok(counted) => total = counted,
            Err(why) => {
                let detail = format!("error parsing succeededIndexes: {why}");
                errors.push(FieldError::invalid(&path, indexes, detail));
            }
        }
    }
    if let Some(count) = count {
        let path = path.child("succeededCount");
        errors.extend(rules::nonnegative_number(count, &path));
        let mut bound = |bound: i64, what: &str| {
            if count > bound {
                let detail = format!("must be less than or equal to {bound} (the number of {what})");
                errors.push(FieldError::invalid(&path, count, detail));
            }
        };
        bound(completions, "specified completions");
        if indexes.is_some() {
            bound(total, "indexes in the specified succeededIndexes field");
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    fn check(errors: &ErrorList, messages: &[&str]) {
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(errors, messages);
    }

    #[test]
    fn failure_rules_say_what_counts_as_failure() {
        let rows: [(Value, &[&str]); 6] = [
            (json!({"action": "Ignore", "onExitCodes": {"operator": "In", "values": [1, 5]}}), &[]),
            (
                json!({"action": "Ignore"}),
                &["p.rules[0]: Invalid value: specifying one of OnExitCodes and OnPodConditions is required"],
            ),
            (
                json!({"action": "Explode", "onPodConditions": [{"type": "A", "status": "True"}]}),
                &[
                    "p.rules[0].action: Unsupported value: \"Explode\": supported values: \"Count\", \"FailIndex\", \"FailJob\", \"Ignore\"",
                ],
            ),
            (
                json!({"action": "Ignore", "onExitCodes": {"operator": "In", "values": [0]}}),
                &["p.rules[0].onExitCodes.values[0]: Invalid value: 0: must not be 0 for the In operator"],
            ),
            (
                json!({"action": "Ignore", "onExitCodes": {"operator": "NotIn", "values": [3, 1, 1]}}),
                &[
                    "p.rules[0].onExitCodes.values[2]: Duplicate value: 1",
                    "p.rules[0].onExitCodes.values: Invalid value: [3,1,1]: must be ordered",
                ],
            ),
            (
                json!({"action": "FailIndex", "onExitCodes": {"containerName": "z", "operator": "NotIn", "values": [1]}}),
                &[
                    "p.rules[0].action: Invalid value: \"FailIndex\": requires the backoffLimitPerIndex to be set",
                    "p.rules[0].onExitCodes.containerName: Invalid value: \"z\": must be one of the container or initContainer names in the pod template",
                ],
            ),
        ];
        for (rule, messages) in rows {
            let spec = json!({"podFailurePolicy": {"rules": [rule]}});
            check(&validate_pod_failure_policy(&spec, &FieldPath::new("p")), messages);
        }
    }

    #[test]
    fn success_rules_stay_within_the_job() {
        let rows: [(Value, &[&str]); 4] = [
            (json!([{"succeededIndexes": "0-1", "succeededCount": 2}]), &[]),
            (
                json!([]),
                &[
                    "p.rules: Required value: at least one rules must be specified when the successPolicy is specified",
                ],
            ),
            (
                json!([{"succeededCount": 9}]),
                &[
                    "p.rules[0].succeededCount: Invalid value: 9: must be less than or equal to 3 (the number of specified completions)",
                ],
            ),
            (
                json!([{"succeededIndexes": "5"}, {"succeededIndexes": "0-1", "succeededCount": 3}]),
                &[
                    "p.rules[0].succeededIndexes: Invalid value: \"5\": error parsing succeededIndexes: too large index: \"5\"",
                    "p.rules[1].succeededCount: Invalid value: 3: must be less than or equal to 2 (the number of indexes in the specified succeededIndexes field)",
                ],
            ),
        ];
        for (rules, messages) in rows {
            let spec = json!({"completions": 3, "successPolicy": {"rules": rules}});
            check(&validate_success_policy(&spec, &FieldPath::new("p")), messages);
        }
    }
}
