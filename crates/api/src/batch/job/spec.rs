//! Validates the spec of jobs, and of job templates in cron jobs.

use super::policies::{validate_pod_failure_policy, validate_success_policy};
use crate::core::pod_template::{self, PodValidationOptions};
use crate::{field_checks, rules};
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, Value, ValueExt, validation::is_domain_prefixed_path,
};

const MAX_INDEXED_PARALLELISM: i64 = 100_000;
const MAX_FAILED_INDEXES: i64 = 100_000;
const MAX_MANAGED_BY_LENGTH: usize = 63;
/// The number of completions above which the failed indexes may become too many to store.
const MANY_COMPLETIONS: i64 = 100_000;
const MAX_PARALLELISM_OF_MANY: i64 = 10_000;
const MAX_FAILED_INDEXES_OF_MANY: i64 = 10_000;

/// Validates a job's `spec`, but for its selector.
pub(crate) fn validate(spec: &Value, path: &FieldPath, options: &PodValidationOptions) -> ErrorList {
    let mut errors = ErrorList::new();
    for name in [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ] {
        if let Some(number) = spec.i64_at(name) {
            errors.extend(rules::nonnegative_number(number, &path.child(name)));
        }
    }
    if spec.at("maxFailedIndexes").is_some() && spec.at("backoffLimitPerIndex").is_none() {
        let detail = "when maxFailedIndexes is specified";
        errors.push(FieldError::required(&path.child("backoffLimitPerIndex"), detail));
    }
    if let Some(manager) = spec.at("managedBy").and_then(Value::as_str) {
        let path = path.child("managedBy");
        errors.extend(is_domain_prefixed_path(&path, manager));
        if manager.len() > MAX_MANAGED_BY_LENGTH {
            errors.push(FieldError::too_long(&path, MAX_MANAGED_BY_LENGTH));
        }
    }
    errors.extend(validate_completion_mode(spec, path));
    if spec.at("podFailurePolicy").is_some() {
        errors.extend(validate_pod_failure_policy(spec, &path.child("podFailurePolicy")));
    }
    if let Some(policy) = spec.at("successPolicy") {
        let path = path.child("successPolicy");
        if is_indexed(spec) {
            errors.extend(validate_success_policy(spec, &path));
        } else {
            let error = FieldError::invalid(&path, policy.clone(), "requires indexed completion mode");
            errors.push(pintle_internal_form::show(error, "*batch.SuccessPolicy"));
        }
    }
    errors.extend(validate_pod_replacement_policy(spec, &path.child("podReplacementPolicy")));
    let template_path = path.child("template");
    errors.extend(pod_template::validate(rules::value_at(spec, "template"), &template_path, options));
    errors.extend(validate_restart_policy(spec, &template_path.child("spec").child("restartPolicy")));
    errors
}

/// Whether each pod has an index.
pub(crate) fn is_indexed(spec: &Value) -> bool {
    spec.str_at("completionMode") == "Indexed"
}

fn validate_completion_mode(spec: &Value, path: &FieldPath) -> ErrorList {
    match spec.str_at("completionMode") {
        "Indexed" => return validate_indexed(spec, path),
        mode if spec.at("completionMode").is_some() && mode != "NonIndexed" => {
            return field_checks::supported(mode, &["NonIndexed", "Indexed"], &path.child("completionMode"));
        }
        _ => {}
    }
    let detail = "requires indexed completion mode";
    let only_indexed = ["backoffLimitPerIndex", "maxFailedIndexes"];
    let set = only_indexed.iter().filter_map(|name| Some((name, spec.i64_at(name)?)));
    set.map(|(name, number)| FieldError::invalid(&path.child(name), number, detail)).collect()
}

fn validate_indexed(spec: &Value, path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    let (completions, parallelism) = (spec.i64_at("completions"), spec.i64_at("parallelism"));
    let max_failed = spec.i64_at("maxFailedIndexes");
    if completions.is_none() {
        let detail = "when completion mode is Indexed";
        errors.push(FieldError::required(&path.child("completions"), detail));
    }
    let mut bound = |name: &str, number: Option<i64>, bound: i64, detail: String| {
        if let Some(number) = number.filter(|number| *number > bound) {
            errors.push(FieldError::invalid(&path.child(name), number, detail));
        }
    };
    bound(
        "parallelism",
        parallelism,
        MAX_INDEXED_PARALLELISM,
        format!("must be less than or equal to {MAX_INDEXED_PARALLELISM} when completion mode is Indexed"),
    );
    if let Some(completions) = completions {
        let detail = "must be less than or equal to completions".to_owned();
        bound("maxFailedIndexes", max_failed, completions, detail);
    }
    let detail = format!("must be less than or equal to {MAX_FAILED_INDEXES}");
    bound("maxFailedIndexes", max_failed, MAX_FAILED_INDEXES, detail);
    if completions.is_none_or(|number| number <= MANY_COMPLETIONS)
        || spec.at("backoffLimitPerIndex").is_none()
    {
        return errors;
    }
    if max_failed.is_none() {
        let detail = format!("must be specified when completions is above {MANY_COMPLETIONS}");
        errors.push(FieldError::required(&path.child("maxFailedIndexes"), detail));
    }
    let of_many = [
        ("parallelism", parallelism, MAX_PARALLELISM_OF_MANY),
        ("maxFailedIndexes", max_failed, MAX_FAILED_INDEXES_OF_MANY),
    ];
    for (name, number, bound) in of_many {
        if let Some(number) = number.filter(|number| *number > bound) {
            let detail = format!(
                "must be less than or equal to {bound} when completions are above {MANY_COMPLETIONS} and used with \
                 backoff limit per index"
            );
            errors.push(FieldError::invalid(&path.child(name), number, detail));
        }
    }
    errors
}

fn validate_pod_replacement_policy(spec: &Value, path: &FieldPath) -> ErrorList {
    let Some(policy) = spec.at("podReplacementPolicy").and_then(Value::as_str) else {
        return ErrorList::new();
    };
    let supported: &[&str] = match spec.at("podFailurePolicy") {
        Some(_) => &["Failed"],
        None => &["Failed", "TerminatingOrFailed"],
    };
    field_checks::supported(policy, supported, path)
}

/// Requires pods that end.
fn validate_restart_policy(spec: &Value, path: &FieldPath) -> ErrorList {
    match spec.str_at("template.spec.restartPolicy") {
        "" | "Always" => vec![FieldError::required(path, "valid values: \"OnFailure\", \"Never\"")],
        "OnFailure" if spec.at("podFailurePolicy").is_some() => vec![FieldError::invalid(
            path,
            "OnFailure",
            "only \"Never\" is supported when podFailurePolicy is specified",
        )],
        policy => field_checks::supported(policy, &["OnFailure", "Never"], path),
    }
}

/// Warnings about the spec.
pub(crate) fn warnings(spec: &Value, old: Option<&Value>, path: &FieldPath) -> Vec<String> {
    let mut warnings = Vec::new();
    let number = |name: &str| spec.i64_at(name).unwrap_or_default();
    if is_indexed(spec)
        && number("completions") > MANY_COMPLETIONS
        && number("parallelism") > MAX_PARALLELISM_OF_MANY
    {
        warnings.push(format!(
            "{path}: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, \
             Kubernetes might not be able to track completedIndexes when a big number of indexes fail"
        ));
    }
    let template = rules::value_at(spec, "template");
    let old = old.and_then(|old| old.at("template"));
    warnings.extend(pod_template::warnings(template, old, &path.child("template")));
    warnings
}

/// Defaults the failure policy.
pub(crate) fn set_failure_policy_defaults(spec: &mut Value) {
    for rule in spec.items_at_mut("podFailurePolicy.rules") {
        for pattern in rule.items_at_mut("onPodConditions") {
            if pattern.str_at("status").is_empty() {
                pattern.set("status", "True");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    #[test]
    fn numbers_fit_the_completion_mode() {
        let rows: [(Value, &[&str]); 5] = [
            (json!({"completionMode": "Indexed", "completions": 3, "parallelism": 2}), &[]),
            (
                json!({"completionMode": "Indexed"}),
                &["spec.completions: Required value: when completion mode is Indexed"],
            ),
            (
                json!({"completionMode": "Random"}),
                &[
                    "spec.completionMode: Unsupported value: \"Random\": supported values: \"NonIndexed\", \"Indexed\"",
                ],
            ),
            (
                json!({"backoffLimitPerIndex": 1, "completionMode": "NonIndexed"}),
                &["spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode"],
            ),
            (
                json!({"completionMode": "Indexed", "completions": 200_000, "parallelism": 200_000}),
                &[
                    "spec.parallelism: Invalid value: 200000: must be less than or equal to 100000 when completion mode is Indexed",
                ],
            ),
        ];
        for (spec, messages) in rows {
            let errors = validate_completion_mode(&spec, &FieldPath::new("spec"));
            let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
            assert_eq!(errors, messages);
        }
    }

    #[test]
    fn pods_of_a_job_end() {
        let check = |policy: &str, failure_policy: Value, message: &str| {
            let spec =
                json!({"podFailurePolicy": failure_policy, "template": {"spec": {"restartPolicy": policy}}});
            let errors = validate_restart_policy(&spec, &FieldPath::new("r"));
            let text: Vec<String> = errors.iter().map(ToString::to_string).collect();
            assert_eq!(text.join(""), message);
        };
        check("Never", Value::Null, "");
        check("OnFailure", Value::Null, "");
        check("Always", Value::Null, "r: Required value: valid values: \"OnFailure\", \"Never\"");
        check(
            "Perhaps",
            Value::Null,
            "r: Unsupported value: \"Perhaps\": supported values: \"OnFailure\", \"Never\"",
        );
        check(
            "OnFailure",
            json!({}),
            "r: Invalid value: \"OnFailure\": only \"Never\" is supported when podFailurePolicy is specified",
        );
    }
}
