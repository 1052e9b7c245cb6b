//! Validates a job's status. Old statuses may violate newer rules, so most rules apply only to changed fields.

use super::{indexes, spec::is_indexed};
use crate::rules;
use pintle_machinery::{ErrorList, FieldError, FieldPath, Value, ValueExt, meta::parse_time};
use std::collections::HashSet;

const COMPLETE: &str = "Complete";
const FAILED: &str = "Failed";
const FAILURE_TARGET: &str = "FailureTarget";
const SUCCESS_CRITERIA_MET: &str = "SuccessCriteriaMet";

/// An update of a job's status.
pub(super) struct StatusUpdate<'a> {
    pub(super) object: &'a Value,
    pub(super) old: &'a Value,
}

impl StatusUpdate<'_> {
    pub(super) fn validate(&self) -> ErrorList {
        let mut errors = self.validate_numbers();
        errors.extend(self.validate_uncounted());
        errors.extend(self.validate_completion());
        errors.extend(self.validate_finished());
        errors.extend(self.validate_indexes());
        errors.extend(self.validate_last());
        errors.extend(self.validate_kept());
        errors
    }

    fn path(&self, name: &str) -> FieldPath {
        FieldPath::new("status").child(name)
    }

    fn number(&self, name: &str) -> i64 {
        self.object.i64_at(&format!("status.{name}")).unwrap_or_default()
    }

    fn field(&self, name: &str) -> Option<&Value> {
        self.object.at(&format!("status.{name}"))
    }

    fn changes(&self, name: &str) -> bool {
        rules::differs(self.object, self.old, &format!("status.{name}"))
    }

    fn is(&self, condition: &str) -> bool {
        is_true(self.object, condition)
    }

    fn switches(&self, condition: &str) -> bool {
        self.is(condition) != is_true(self.old, condition)
    }

    fn is_finished(&self) -> bool {
        self.is(COMPLETE) || self.is(FAILED)
    }

    fn finishes(&self) -> bool {
        self.is_finished() != (is_true(self.old, COMPLETE) || is_true(self.old, FAILED))
    }

    fn conditions(&self, detail: &str) -> FieldError {
        rules::invalid_whole(&self.path("conditions"), detail)
    }

    fn invalid(&self, name: &str, detail: impl Into<String>) -> FieldError {
        let value = self.field(name).cloned().unwrap_or_default();
        FieldError::invalid(&self.path(name), value, detail)
    }

    fn validate_numbers(&self) -> ErrorList {
        ["active", "succeeded", "failed", "ready", "terminating"]
            .iter()
            .flat_map(|name| rules::nonnegative(self.object, &format!("status.{name}")))
            .collect()
    }

    fn validate_uncounted(&self) -> ErrorList {
        let mut errors = ErrorList::new();
        let mut seen: HashSet<&str> = HashSet::new();
        for list in ["succeeded", "failed"] {
            let path = self.path("uncountedTerminatedPods").child(list);
            for (index, uid) in self.object.items_at(path.as_str()).iter().enumerate() {
                let uid = uid.as_str().unwrap_or_default();
                if uid.is_empty() {
                    errors.push(FieldError::invalid(&path.index(index), uid, "must not be empty"));
                } else if !seen.insert(uid) {
                    errors.push(FieldError::duplicate(&path.index(index), uid).of_named_type());
                }
            }
        }
        errors
    }

    fn validate_completion(&self) -> ErrorList {
        let mut errors = ErrorList::new();
        let is_complete = self.is(COMPLETE);
        let completes = self.switches(COMPLETE);
        if is_complete && self.is(FAILED) && (completes || self.switches(FAILED)) {
            errors.push(self.conditions("cannot set Complete=True and Failed=true conditions"));
        }
        if is_complete && self.is(FAILURE_TARGET) && (completes || self.switches(FAILURE_TARGET)) {
            errors.push(self.conditions("cannot set Complete=True and FailureTarget=true conditions"));
        }
        let completion_time = self.field("completionTime");
        if completes || self.changes("completionTime") {
            if completion_time.is_some() && !is_complete {
                let detail = "cannot set completionTime when there is no Complete=True condition";
                errors.push(self.invalid("completionTime", detail));
            }
            if completion_time.is_none() && is_complete {
                let detail = "completionTime is required for Complete jobs";
                errors.push(FieldError::required(&self.path("completionTime"), detail));
            }
        }
        if self.changes("startTime") || self.changes("completionTime") {
            let time = |name: &str| parse_time(self.field(name)?.as_str()?);
            if let (Some(start), Some(end)) = (time("startTime"), time("completionTime"))
                && end < start
            {
                errors.push(self.invalid("completionTime", "must be equal to or after `startTime`"));
            }
        }
        if (self.switches(FAILED) || self.changes("failedIndexes"))
            && self.is(FAILED)
            && !self.is(FAILURE_TARGET)
        {
            let detail = "cannot set Failed=True condition without the FailureTarget=true condition";
            errors.push(self.conditions(detail));
        }
        if (completes || self.switches(SUCCESS_CRITERIA_MET)) && is_complete && !self.is(SUCCESS_CRITERIA_MET)
        {
            let detail = "cannot set Complete=True condition without the SuccessCriteriaMet=true condition";
            errors.push(self.conditions(detail));
        }
        errors
    }

    fn validate_finished(&self) -> ErrorList {
        let mut errors = ErrorList::new();
        if !self.is_finished() {
            return errors;
        }
        let finishes = self.finishes();
        if (finishes || self.changes("active")) && self.number("active") > 0 {
            errors.push(self.invalid("active", "active>0 is invalid for finished job"));
        }
        let never_starts =
            self.object.bool_at("spec.suspend") && self.object.i64_at("spec.completions") == Some(0);
        if (finishes || self.changes("startTime")) && !never_starts && self.field("startTime").is_none() {
            let detail = "startTime is required for finished job";
            errors.push(FieldError::required(&self.path("startTime"), detail));
        }
        let uncounted = ["succeeded", "failed"]
            .iter()
            .any(|list| !self.object.items_at(&format!("status.uncountedTerminatedPods.{list}")).is_empty());
        if (finishes || self.changes("uncountedTerminatedPods")) && uncounted {
            let error = self.invalid("uncountedTerminatedPods", "must be empty for finished job");
            errors.push(pintle_internal_form::show(error, "batch.UncountedTerminatedPods"));
        }
        errors
    }

    fn validate_indexes(&self) -> ErrorList {
        let mut errors = ErrorList::new();
        let completions = self.object.i64_at("spec.completions");
        let is_per_index = self.object.at("spec.backoffLimitPerIndex").is_some();
        let completed = self.object.str_at("status.completedIndexes");
        let failed = self.field("failedIndexes").and_then(Value::as_str);
        let (completed_changes, failed_changes) =
            (self.changes("completedIndexes"), self.changes("failedIndexes"));
        let mut parse = |name: &str, text: &str| {
            if let Some(Err(why)) = completions.map(|completions| indexes::count(text, completions)) {
                errors.push(self.invalid(name, format!("error parsing {name}: {why}")));
            }
        };
        if completed_changes {
            parse("completedIndexes", completed);
        }
        if let Some(failed) = failed.filter(|_| failed_changes && is_per_index) {
            parse("failedIndexes", failed);
        }
        if completed_changes && !completed.is_empty() && !is_indexed(rules::value_at(self.object, "spec")) {
            let detail = "cannot set non-empty completedIndexes when non-indexed completion mode";
            errors.push(self.invalid("completedIndexes", detail));
        }
        if failed_changes && failed.is_some() && !is_per_index {
            let detail = "cannot set non-null failedIndexes when backoffLimitPerIndex is null";
            errors.push(self.invalid("failedIndexes", detail));
        }
        if (completed_changes || failed_changes)
            && let (Some(completions), Some(failed)) = (completions, failed)
            && let Some(index) = indexes::overlap(completed, failed, completions)
        {
            let detail = format!("failedIndexes and completedIndexes overlap at index: {index}");
            errors.push(self.invalid("failedIndexes", detail));
        }
        errors
    }

    fn validate_last(&self) -> ErrorList {
        let mut errors = ErrorList::new();
        if (self.finishes() || self.changes("terminating"))
            && self.number("terminating") > 0
            && self.is_finished()
        {
            errors.push(self.invalid("terminating", "terminating>0 is invalid for finished job"));
        }
        if (self.changes("ready") || self.changes("active")) && self.number("ready") > self.number("active") {
            errors.push(self.invalid("ready", "cannot set more ready pods than active"));
        }
        if self.is(SUCCESS_CRITERIA_MET) {
            for (condition, detail) in [
                (FAILED, "cannot set SuccessCriteriaMet=True and Failed=true conditions"),
                (FAILURE_TARGET, "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions"),
            ] {
                if self.is(condition) {
                    errors.push(self.conditions(detail));
                }
            }
        } else if self.object.at("spec.successPolicy").is_some() && self.is(COMPLETE) {
            let detail = "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True";
            errors.push(self.conditions(detail));
        }
        errors
    }

    /// Rejects reversals of monotonic fields.
    fn validate_kept(&self) -> ErrorList {
        let mut errors = ErrorList::new();
        for condition in [FAILED, COMPLETE, FAILURE_TARGET] {
            if is_true(self.old, condition) && !self.is(condition) {
                let detail = format!("cannot disable the terminal {condition}=True condition");
                errors.push(self.conditions(&detail));
            }
        }
        let old_number = |name: &str| self.old.i64_at(&format!("status.{name}")).unwrap_or_default();
        // An indexed job may shrink with its parallelism, and then drops its succeeded indexes.
        let may_shrink = is_indexed(rules::value_at(self.object, "spec"))
            && self.object.at("spec.completions") == self.object.at("spec.parallelism");
        for (name, kept) in [("failed", true), ("succeeded", !may_shrink)] {
            if kept && self.number(name) < old_number(name) {
                let detail = format!("cannot decrease the {name} counter");
                errors.push(FieldError::invalid(&self.path(name), self.number(name), detail));
            }
        }
        let is_set = |name: &str| self.old.at(&format!("status.{name}")).is_some();
        if is_set("completionTime")
            && self.field("completionTime").is_some()
            && self.changes("completionTime")
        {
            errors.push(self.invalid("completionTime", "field is immutable"));
        }
        let resumes = is_true(self.old, "Suspended") && has_status(self.object, "Suspended", "False");
        if is_set("startTime")
            && self.changes("startTime")
            && !resumes
            && !self.object.bool_at("spec.suspend")
        {
            errors.push(self.invalid("startTime", "field is immutable for unsuspended job once set"));
        }
        match (is_true(self.old, SUCCESS_CRITERIA_MET), self.is(SUCCESS_CRITERIA_MET)) {
            (true, false) => {
                errors.push(self.conditions("cannot disable the SuccessCriteriaMet=True condition"));
            }
            (false, true) if is_true(self.old, COMPLETE) => errors.push(self.conditions(
                "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions",
            )),
            _ => {}
        }
        errors
    }
}

/// Whether a condition is true.
pub(super) fn is_true(object: &Value, condition: &str) -> bool {
    has_status(object, condition, "True")
}

fn has_status(object: &Value, condition: &str, status: &str) -> bool {
    object
        .items_at("status.conditions")
        .iter()
        .any(|one| one.str_at("type") == condition && one.str_at("status") == status)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    fn check(spec: Value, old: Value, new: Value, messages: &[&str]) {
        let (object, old) = (json!({"spec": spec, "status": new}), json!({"spec": spec, "status": old}));
        let errors = StatusUpdate { object: &object, old: &old }.validate();
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(errors, messages);
    }

    #[test]
    fn statuses_that_contradict_themselves_are_refused() {
        let started = json!({"startTime": "2024-01-01T00:00:00Z"});
        let done = |more: Value| {
            let mut status = json!({
                "startTime": "2024-01-01T00:00:00Z", "completionTime": "2024-01-02T00:00:00Z",
                "conditions": [{"type": "SuccessCriteriaMet", "status": "True"}, {"type": "Complete", "status": "True"}],
            });
            status.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            status
        };
        check(json!({}), started.clone(), done(json!({})), &[]);
        check(
            json!({}),
            started.clone(),
            done(json!({"active": 1, "terminating": 2})),
            &[
                "status.active: Invalid value: 1: active>0 is invalid for finished job",
                "status.terminating: Invalid value: 2: terminating>0 is invalid for finished job",
            ],
        );
        check(
            json!({}),
            started.clone(),
            done(json!({"uncountedTerminatedPods": {"failed": ["b"]}})),
            &[
                "status.uncountedTerminatedPods: Invalid value: {\"Succeeded\":null,\"Failed\":[\"b\"]}: must be empty for finished job",
            ],
        );
        check(
            json!({}),
            started.clone(),
            done(json!({"conditions": [{"type": "Complete", "status": "True"}]})),
            &[
                "status.conditions: Invalid value: cannot set Complete=True condition without the SuccessCriteriaMet=true condition",
            ],
        );
        check(
            json!({}),
            started,
            json!({"startTime": "2024-01-01T00:00:00Z", "active": 1, "ready": 2}),
            &["status.ready: Invalid value: 2: cannot set more ready pods than active"],
        );
        check(
            json!({}),
            json!({}),
            json!({"uncountedTerminatedPods": {"succeeded": ["a", "a", ""], "failed": ["a"]}}),
            &[
                "status.uncountedTerminatedPods.succeeded[1]: Duplicate value: \"a\"",
                "status.uncountedTerminatedPods.succeeded[2]: Invalid value: \"\": must not be empty",
                "status.uncountedTerminatedPods.failed[0]: Duplicate value: \"a\"",
            ],
        );
    }

    #[test]
    fn indexes_fit_the_job() {
        let indexed = json!({"completionMode": "Indexed", "completions": 5, "backoffLimitPerIndex": 1});
        check(
            indexed.clone(),
            json!({}),
            json!({"completedIndexes": "3,1", "failedIndexes": "9"}),
            &[
                "status.completedIndexes: Invalid value: \"3,1\": error parsing completedIndexes: non-increasing order, previous: 3, current: 1",
                "status.failedIndexes: Invalid value: \"9\": error parsing failedIndexes: too large index: \"9\"",
            ],
        );
        check(
            indexed,
            json!({}),
            json!({"completedIndexes": "0-2", "failedIndexes": "2,3"}),
            &[
                "status.failedIndexes: Invalid value: \"2,3\": failedIndexes and completedIndexes overlap at index: 2",
            ],
        );
        check(
            json!({"completions": 1}),
            json!({}),
            json!({"completedIndexes": "0", "failedIndexes": "1"}),
            &[
                "status.completedIndexes: Invalid value: \"0\": cannot set non-empty completedIndexes when non-indexed completion mode",
                "status.failedIndexes: Invalid value: \"1\": cannot set non-null failedIndexes when backoffLimitPerIndex is null",
            ],
        );
    }

    #[test]
    fn what_was_counted_stays_counted() {
        check(
            json!({}),
            json!({"failed": 1, "succeeded": 2, "startTime": "2024-01-01T00:00:00Z"}),
            json!({"startTime": "2024-02-01T00:00:00Z"}),
            &[
                "status.failed: Invalid value: 0: cannot decrease the failed counter",
                "status.succeeded: Invalid value: 0: cannot decrease the succeeded counter",
                "status.startTime: Invalid value: \"2024-02-01T00:00:00Z\": field is immutable for unsuspended job once set",
            ],
        );
    }
}
