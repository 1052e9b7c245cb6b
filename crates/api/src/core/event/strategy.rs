//! The strategy of events in both groups. Validation is strict for the newer group and lenient for the older one, so it
//! depends on the group of the request.

use crate::{field_checks, rules};
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, Value, ValueExt,
    meta::{ObjectMeta, parse_time},
    validation::{is_dns1123_subdomain, is_qualified_name, validate_immutable_field},
};
use pintle_registry::{GarbageCollectionPolicy, RequestContext, Strategy};
use std::time::Duration;

const TEXT_LIMIT: usize = 128;
const MESSAGE_LIMIT: usize = 1024;

/// The strategy, with the time for which an event is kept; zero keeps it without limit.
pub(crate) struct EventStrategy {
    pub(crate) time_to_live: Duration,
}

impl Strategy for EventStrategy {
    fn validate(&self, context: &RequestContext<'_>, object: &Value) -> ErrorList {
        let strict = is_strict(context);
        let mut errors = validate_leniently(object, strict);
        if strict {
            errors.extend(rules::metadata(object, true));
            errors.extend(validate_series(object));
            errors.extend(validate_new(object));
        }
        errors
    }

    fn validate_update(&self, context: &RequestContext<'_>, object: &Value, old: &Value) -> ErrorList {
        let strict = is_strict(context);
        let mut errors = validate_leniently(object, strict);
        if strict {
            errors.extend(rules::metadata_update(object, old));
            // An empty series is not the same as none.
            if object.at("series") != old.at("series") {
                errors.extend(validate_series(object));
            }
            errors.extend(validate_kept(object, old));
        }
        errors
    }

    fn allow_create_on_update(&self) -> bool {
        true
    }

    fn ttl(&self, _object: &Value) -> Option<Duration> {
        // Whole seconds, as the reference counts them.
        let seconds = self.time_to_live.as_secs();
        (seconds > 0).then(|| Duration::from_secs(seconds))
    }

    fn garbage_collection_policy(&self) -> GarbageCollectionPolicy {
        GarbageCollectionPolicy::Unsupported
    }
}

fn is_strict(context: &RequestContext<'_>) -> bool {
    !context.group_version.group.is_empty()
}

fn has_time(object: &Value, path: &str) -> bool {
    object.at(path).is_some()
}

/// Validates any event. One with `eventTime` comes from a newer recorder.
fn validate_leniently(object: &Value, strict: bool) -> ErrorList {
    let mut errors = if has_time(object, "eventTime") {
        validate_recorded(object, if strict { "reportingController" } else { "reportingComponent" })
    } else {
        let (own, involved) = (object.namespace(), object.str_at("involvedObject.namespace"));
        let agrees = own == involved || involved.is_empty() && matches!(own, "" | "default");
        if agrees { ErrorList::new() } else { vec![namespace_mismatch(involved)] }
    };
    let namespace = object.namespace();
    let messages = is_dns1123_subdomain(namespace);
    errors.extend(field_checks::invalid_each(&FieldPath::new("namespace"), namespace, messages));
    errors
}

fn namespace_mismatch(involved: &str) -> FieldError {
    FieldError::invalid(
        &FieldPath::new("involvedObject.namespace"),
        involved,
        "does not match event.namespace",
    )
}

fn validate_recorded(object: &Value, controller_field: &str) -> ErrorList {
    let mut errors = ErrorList::new();
    let involved = object.str_at("involvedObject.namespace");
    if involved.is_empty() && !matches!(object.namespace(), "default" | "kube-system") {
        errors.push(namespace_mismatch(involved));
    }
    let controller = object.str_at("reportingComponent");
    let path = FieldPath::new(controller_field);
    if controller.is_empty() {
        errors.push(FieldError::required(&path, ""));
    }
    errors.extend(field_checks::invalid_each(&path, controller, is_qualified_name(controller)));
    for name in ["reportingInstance", "action", "reason"] {
        if object.str_at(name).is_empty() {
            errors.push(FieldError::required(&FieldPath::new(name), ""));
        }
        errors.extend(validate_length(object, name, TEXT_LIMIT));
    }
    errors.extend(validate_length(object, "message", MESSAGE_LIMIT));
    errors
}

fn validate_length(object: &Value, name: &str, limit: usize) -> Option<FieldError> {
    let too_long = object.str_at(name).len() > limit;
    let detail = format!("can have at most {limit} characters");
    too_long.then(|| FieldError::invalid(&FieldPath::new(name), "", detail))
}

fn validate_series(object: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    if object.at("series").is_none() {
        return errors;
    }
    if object.i64_at("series.count").unwrap_or_default() < 2 {
        errors.push(FieldError::invalid(&FieldPath::new("series.count"), "", "should be at least 2"));
    }
    if !has_time(object, "series.lastObservedTime") {
        errors.push(FieldError::required(&FieldPath::new("series.lastObservedTime"), ""));
    }
    errors
}

/// Validates a new event of the newer group.
fn validate_new(object: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    if !has_time(object, "eventTime") {
        errors.push(FieldError::required(&FieldPath::new("eventTime"), ""));
    }
    let event_type = object.str_at("type");
    if !["Normal", "Warning"].contains(&event_type) {
        let detail = format!("has invalid value: {event_type}");
        errors.push(FieldError::invalid(&FieldPath::new("type"), "", detail));
    }
    let set = [
        ("firstTimestamp", has_time(object, "firstTimestamp")),
        ("lastTimestamp", has_time(object, "lastTimestamp")),
        ("count", object.i64_at("count").unwrap_or_default() != 0),
        ("source", !object.str_at("source.component").is_empty() || !object.str_at("source.host").is_empty()),
    ];
    for (name, _) in set.iter().filter(|(_, is_set)| *is_set) {
        errors.push(FieldError::invalid(&FieldPath::new(name), "", "needs to be unset"));
    }
    errors
}

/// Validates the immutable fields of an event of the newer group: all but its series.
fn validate_kept(object: &Value, old: &Value) -> ErrorList {
    let kept = |name: &str| {
        let (new, old) = (value_or_zero(object, name), value_or_zero(old, name));
        let form = match name {
            "involvedObject" => "core.ObjectReference",
            "related" => "*core.ObjectReference",
            "source" => "core.EventSource",
            _ => "?",
        };
        let errors = pintle_internal_form::validate_immutable(&new, &old, &FieldPath::new(name), form);
        errors.into_iter().map(FieldError::of_plain_text)
    };
    let mut errors = ErrorList::new();
    for name in [
        "involvedObject",
        "reason",
        "message",
        "source",
        "firstTimestamp",
        "lastTimestamp",
        "count",
        // Checked and reported twice.
        "reason",
        "type",
    ] {
        errors.extend(kept(name));
    }
    let micros = |event: &Value| parse_time(event.str_at("eventTime")).map(|time| time.as_microsecond());
    if micros(object) != micros(old) {
        errors.extend(kept("eventTime"));
    }
    for name in ["action", "related"] {
        errors.extend(kept(name));
    }
    let controller = |event: &Value| value_or_zero(event, "reportingComponent");
    let path = FieldPath::new("reportingController");
    let changed = validate_immutable_field(&controller(object), &controller(old), &path);
    errors.extend(changed.into_iter().map(FieldError::of_plain_text));
    errors.extend(kept("reportingInstance"));
    errors
}

/// The value of a member, where an absent text is empty and an absent number zero.
fn value_or_zero(object: &Value, name: &str) -> Value {
    let zero = || match name {
        "count" => 0.into(),
        "involvedObject" | "source" | "related" | "firstTimestamp" | "lastTimestamp" | "eventTime" => {
            Value::Null
        }
        _ => "".into(),
    };
    object.at(name).cloned().unwrap_or_else(zero)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    #[test]
    fn events_are_kept_for_whole_seconds() {
        let ttl = |time_to_live| EventStrategy { time_to_live }.ttl(&Value::Null);
        assert_eq!(ttl(Duration::from_secs(3600)), Some(Duration::from_secs(3600)));
        assert_eq!(ttl(Duration::from_millis(2900)), Some(Duration::from_secs(2)));
        assert_eq!(ttl(Duration::from_millis(900)), None);
        assert_eq!(ttl(Duration::ZERO), None);
    }

    #[test]
    fn events_belong_to_the_namespace_of_their_object() {
        let check = |own: &str, involved: &str, time: bool, agrees: bool| {
            let mut event = json!({
                "metadata": {"namespace": own}, "involvedObject": {"namespace": involved},
                "reportingComponent": "c", "reportingInstance": "i", "action": "a", "reason": "r",
            });
            if time {
                event["eventTime"] = json!("2024-01-01T00:00:00.000000Z");
            }
            assert_eq!(validate_leniently(&event, false).is_empty(), agrees, "{own} {involved} {time}");
        };
        check("n", "n", false, true);
        check("n", "other", false, false);
        check("n", "", false, false);
        check("default", "", false, true);
        check("n", "", true, false);
        check("kube-system", "", true, true);
        check("n", "other", true, true);
    }

    #[test]
    fn recorded_events_say_who_recorded_what() {
        let event =
            json!({"metadata": {"namespace": "n"}, "involvedObject": {"namespace": "n"}, "eventTime": "t"});
        let fields: Vec<String> =
            validate_leniently(&event, false).iter().map(|error| error.field.to_string()).collect();
        assert_eq!(
            fields,
            [
                "reportingComponent",
                "reportingComponent",
                "reportingComponent",
                "reportingInstance",
                "action",
                "reason"
            ]
        );
    }

    #[test]
    fn a_changed_reason_is_told_twice() {
        let old = json!({"reason": "a", "message": "m", "eventTime": "2024-01-01T00:00:00.123456Z"});
        let mut new = old.clone();
        new["eventTime"] = json!("2024-01-01T00:00:00.123456789Z");
        assert!(validate_kept(&new, &old).is_empty());
        new["reason"] = json!("b");
        let fields: Vec<String> =
            validate_kept(&new, &old).iter().map(|error| error.field.to_string()).collect();
        assert_eq!(fields, ["reason", "reason"]);
    }
}
