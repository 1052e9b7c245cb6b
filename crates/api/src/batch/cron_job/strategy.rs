//! The rules of cron jobs.

use super::schedule;
use crate::batch::job::spec;
use crate::core::pod_template::{self, PodValidationOptions};
use crate::workload::Workload;
use crate::{field_checks, rules};
use pintle_machinery::{ErrorList, FieldError, FieldPath, Value, ValueExt, meta::ObjectMeta};

const JOB_SPEC: &str = "spec.jobTemplate.spec";
const TEMPLATE: &str = "spec.jobTemplate.spec.template";
/// Names of jobs have a suffix of eleven characters and must fit a label.
const MAX_NAME_LENGTH: usize = 52;
const MAX_ZONE_PART_LENGTH: usize = 14;

/// The rules of cron jobs.
pub(super) struct CronJob;

impl Workload for CronJob {
    const TEMPLATE: &'static str = TEMPLATE;

    fn set_defaults(&self, object: &mut Value) {
        object.object_at_mut("spec.jobTemplate.spec.template.spec");
        if let Some(template) = object.at_mut(TEMPLATE) {
            pod_template::set_defaults(template);
        }
        if let Some(spec) = object.at_mut(JOB_SPEC) {
            spec::set_failure_policy_defaults(spec);
        }
        if object.str_at("spec.concurrencyPolicy").is_empty() {
            object.set("spec.concurrencyPolicy", "Allow");
        }
        object.set_default("spec.suspend", false);
        object.set_default("spec.successfulJobsHistoryLimit", 3);
        object.set_default("spec.failedJobsHistoryLimit", 1);
    }

    /// The checks of any object's metadata suffice.
    fn validate_status_update(&self, _object: &Value, _old: &Value) -> ErrorList {
        ErrorList::new()
    }

    fn validate_spec(&self, object: &Value, old: Option<&Value>) -> ErrorList {
        let mut errors = validate_spec(object, old);
        if old.is_none() && object.name().len() > MAX_NAME_LENGTH {
            let detail = "must be no more than 52 characters";
            errors.push(FieldError::invalid(&FieldPath::new("metadata.name"), object.name(), detail));
        }
        errors
    }

    fn template_warnings(&self, object: &Value, old: Option<&Value>) -> Vec<String> {
        let old = old.and_then(|old| old.at(JOB_SPEC));
        spec::warnings(rules::value_at(object, JOB_SPEC), old, &FieldPath::new(JOB_SPEC))
    }

    fn warnings(&self, object: &Value, old: Option<&Value>) -> Vec<String> {
        if old.is_none() || !object.str_at("spec.schedule").contains("TZ") {
            return Vec::new();
        }
        vec![
            "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see \
             https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
                .to_owned(),
        ]
    }
}

fn validate_spec(object: &Value, old: Option<&Value>) -> ErrorList {
    let path = FieldPath::new("spec");
    let mut errors = validate_schedule(object, old);
    errors.extend(rules::nonnegative(object, "spec.startingDeadlineSeconds"));
    if old.is_none_or(|old| rules::differs(object, old, "spec.timeZone")) {
        errors.extend(validate_time_zone(object));
    }
    let policy = object.str_at("spec.concurrencyPolicy");
    let policies = ["Allow", "Forbid", "Replace"];
    errors.extend(field_checks::required_supported(policy, &policies, &path.child("concurrencyPolicy")));
    errors.extend(validate_job_template(object, old));
    errors.extend(rules::nonnegative(object, "spec.successfulJobsHistoryLimit"));
    errors.extend(rules::nonnegative(object, "spec.failedJobsHistoryLimit"));
    errors
}

fn validate_schedule(object: &Value, old: Option<&Value>) -> ErrorList {
    let path = FieldPath::new("spec.schedule");
    let schedule = object.str_at(path.as_str());
    if schedule.is_empty() {
        return vec![FieldError::required(&path, "")];
    }
    let invalid = |detail: &str| FieldError::invalid(&path, schedule, detail);
    let mut errors = ErrorList::new();
    if let Err(why) = schedule::check(schedule) {
        errors.push(invalid(&why));
    }
    let may_have_zone = old.is_some_and(|old| old.str_at("spec.schedule").contains("TZ"));
    match (schedule.contains("TZ"), may_have_zone) {
        (true, true) if object.at("spec.timeZone").is_some() => {
            errors.push(invalid("cannot use both timeZone field and TZ or CRON_TZ in schedule"));
        }
        (true, false) => {
            errors.push(invalid("cannot use TZ or CRON_TZ in schedule, use timeZone field instead"));
        }
        _ => {}
    }
    errors
}

fn validate_time_zone(object: &Value) -> ErrorList {
    let path = FieldPath::new("spec.timeZone");
    let Some(zone) = object.at(path.as_str()).and_then(Value::as_str) else {
        return ErrorList::new();
    };
    let invalid = |detail: &str| FieldError::invalid(&path, zone, detail).of_named_type();
    let unknown = format!("unknown time zone {zone}");
    if zone.is_empty() {
        return vec![invalid("timeZone must be nil or non-empty string")];
    }
    let is_part = |part: &str| {
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '+');
        !matches!(part, "" | "." | "..")
            && !part.starts_with('-')
            && part.len() <= MAX_ZONE_PART_LENGTH
            && part.chars().all(is_allowed)
    };
    if !zone.split('/').all(is_part) {
        return vec![invalid(&unknown)];
    }
    let mut errors = ErrorList::new();
    if zone.eq_ignore_ascii_case("Local") {
        errors.push(invalid(
            "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones",
        ));
    }
    // Go's names are case-sensitive; it knows the local zone besides those of the database.
    let is_known = zone == "Local"
        || jiff::tz::TimeZone::get(zone)
            .is_ok_and(|found| !found.is_unknown() && found.iana_name() == Some(zone));
    if !is_known {
        errors.push(invalid(&unknown));
    }
    errors
}

fn validate_job_template(object: &Value, old: Option<&Value>) -> ErrorList {
    let options = PodValidationOptions::for_template(old.map(|old| rules::value_at(old, TEMPLATE)));
    let spec = rules::value_at(object, JOB_SPEC);
    let path = FieldPath::new(JOB_SPEC);
    let mut errors = spec::validate(spec, &path, &options);
    if let Some(selector) = spec.at("selector") {
        let detail = "`selector` will be auto-generated";
        let error = FieldError::invalid(&path.child("selector"), selector.clone(), detail);
        errors.push(pintle_internal_form::show(error, "*@LabelSelector"));
    }
    if spec.bool_at("manualSelector") {
        errors.push(FieldError::not_supported(&path.child("manualSelector"), true, &["nil", "false"]));
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
    fn time_zones_are_named() {
        let zone = |zone: &str| validate_time_zone(&json!({"spec": {"timeZone": zone}}));
        check(&zone("Europe/Zurich"), &[]);
        check(&zone("Etc/UTC"), &[]);
        check(&zone(""), &["spec.timeZone: Invalid value: \"\": timeZone must be nil or non-empty string"]);
        check(
            &zone("Mars/Base"),
            &["spec.timeZone: Invalid value: \"Mars/Base\": unknown time zone Mars/Base"],
        );
        check(&zone("../UTC"), &["spec.timeZone: Invalid value: \"../UTC\": unknown time zone ../UTC"]);
        check(&zone("utc"), &["spec.timeZone: Invalid value: \"utc\": unknown time zone utc"]);
        check(
            &zone("LOCAL"),
            &[
                "spec.timeZone: Invalid value: \"LOCAL\": timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones",
                "spec.timeZone: Invalid value: \"LOCAL\": unknown time zone LOCAL",
            ],
        );
        check(
            &zone("Local"),
            &[
                "spec.timeZone: Invalid value: \"Local\": timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones",
            ],
        );
    }

    #[test]
    fn a_zone_in_the_schedule_is_only_kept() {
        let cron_job = |schedule: &str| json!({"spec": {"schedule": schedule}});
        let zoned = cron_job("TZ=UTC 0 * * * *");
        check(
            &validate_schedule(&zoned, None),
            &[
                "spec.schedule: Invalid value: \"TZ=UTC 0 * * * *\": cannot use TZ or CRON_TZ in schedule, use timeZone field instead",
            ],
        );
        check(&validate_schedule(&zoned, Some(&zoned)), &[]);
        check(&validate_schedule(&json!({}), None), &["spec.schedule: Required value"]);
    }
}
