//! Validates resource pool status requests: the spec is immutable, and so is the status once it is set.

use crate::{
    declarative::{Format, KeyedList, LONG_NAME, bounded, changed, keyed_list, pointed_text, required_text},
    field_checks::invalid_each,
    rules,
};
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, Value, ValueExt,
    validation::{
        DNS1123_SUBDOMAIN_MAX_LENGTH, is_dns1123_subdomain, is_dns1123_subdomain_caseless,
        validate_conditions,
    },
};

const LIMIT_MAX: i64 = 1000;
const POOLS_MAX: usize = 1000;
const CONDITIONS_MAX: usize = 10;
const POOL_NAME_MAX: usize = 253;
const MESSAGE_MAX: usize = 256;
const CONDITION_TYPE: &str = "k8s.io/apimachinery/pkg/apis/meta/v1.Condition";
const CASELESS_NAME: Format =
    |name| rules::in_bytes(is_dns1123_subdomain_caseless(name), DNS1123_SUBDOMAIN_MAX_LENGTH);

/// Validates a new request.
pub(super) fn validate(request: &Value) -> ErrorList {
    let mut errors = rules::metadata(request, false);
    let (spec, path) = (rules::value_at(request, "spec"), FieldPath::new("spec"));
    errors.extend(required_text(spec, "driver", &path, CASELESS_NAME));
    if let Some(name) = spec.at("poolName").and_then(Value::as_str) {
        errors.extend(validate_pool_name(name, &path.child("poolName")));
    }
    match spec.i64_at("limit") {
        None => errors.push(FieldError::required(&path.child("limit"), "")),
        limit => errors.extend(bounded(limit, &path.child("limit"), 1, LIMIT_MAX)),
    }
    errors
}

/// Validates an update.
pub(super) fn validate_update(request: &Value, old: &Value) -> ErrorList {
    let mut errors = rules::metadata_update(request, old);
    if rules::differs(request, old, "spec") {
        errors.push(changed(&FieldPath::new("spec")));
    }
    errors
}

/// Validates an update of the status.
pub(super) fn validate_status_update(request: &Value, old: &Value) -> ErrorList {
    let mut errors = rules::metadata_update(request, old);
    let path = FieldPath::new("status");
    let status = rules::value_at(request, "status");
    if old.at("status").is_some() {
        let old = rules::value_at(old, "status");
        errors.extend(pintle_internal_form::validate_immutable(
            status,
            old,
            &path,
            "*resource.ResourcePoolStatusRequestStatus",
        ));
    } else {
        errors.extend(validate_conditions(status.items_at("conditions"), &path.child("conditions")));
    }
    let is_unchanged = old.at("status").is_some() && !rules::differs(request, old, "status");
    if request.at("status").is_some() && !is_unchanged {
        errors.extend(validate_status(status, rules::value_at(old, "status"), &path));
    }
    errors
}

fn validate_status(status: &Value, old: &Value, path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    match status.i64_at("poolCount") {
        None => errors.push(FieldError::required(&path.child("poolCount"), "")),
        count if count == old.i64_at("poolCount") => {}
        count => errors.extend(bounded(count, &path.child("poolCount"), 0, i64::MAX)),
    }
    let (pools, pools_path) = (status.items_at("pools"), path.child("pools"));
    if rules::differs(status, old, "pools") {
        match pools.len() {
            count if count > POOLS_MAX => errors.push(FieldError::too_many(&pools_path, count, POOLS_MAX)),
            _ => errors.extend(
                pools
                    .iter()
                    .enumerate()
                    .flat_map(|(index, pool)| validate_pool(pool, &pools_path.index(index))),
            ),
        }
    }
    let list = KeyedList {
        items: status.items_at("conditions"),
        old: old.items_at("conditions"),
        max: CONDITIONS_MAX,
        key: "type",
        type_name: CONDITION_TYPE,
    };
    if rules::differs(status, old, "conditions") {
        errors.extend(keyed_list(&list, &path.child("conditions"), |_, _, _| ErrorList::new()));
    }
    errors
}

fn validate_pool(pool: &Value, path: &FieldPath) -> ErrorList {
    let mut errors = required_text(pool, "driver", path, CASELESS_NAME);
    match pool.str_at("poolName") {
        "" => errors.push(FieldError::required(&path.child("poolName"), "")),
        name => errors.extend(validate_pool_name(name, &path.child("poolName"))),
    }
    match pool.i64_at("generation").unwrap_or_default() {
        0 => errors.push(FieldError::required(&path.child("generation"), "")),
        generation => errors.extend(bounded(Some(generation), &path.child("generation"), 0, i64::MAX)),
    }
    let least = [
        ("resourceSliceCount", 1),
        ("totalDevices", 0),
        ("allocatedDevices", 0),
        ("availableDevices", 0),
        ("unavailableDevices", 0),
    ];
    for (field, min) in least {
        errors.extend(bounded(pool.i64_at(field), &path.child(field), min, i64::MAX));
    }
    errors.extend(pointed_text(pool, "nodeName", path, LONG_NAME));
    if pool.str_at("validationError").len() > MESSAGE_MAX {
        errors.push(FieldError::too_long(&path.child("validationError"), MESSAGE_MAX));
    }
    errors
}

/// Requires subdomains separated by slashes.
fn validate_pool_name(name: &str, path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    if name.len() > POOL_NAME_MAX {
        errors.push(FieldError::too_long(path, POOL_NAME_MAX));
    }
    for (index, segment) in name.split('/').enumerate().take(POOL_NAME_MAX) {
        if segment.is_empty() {
            errors.push(FieldError::invalid(path, name, format!("segment {index}: must not be empty")));
            continue;
        }
        let wrong = rules::in_bytes(is_dns1123_subdomain(segment), DNS1123_SUBDOMAIN_MAX_LENGTH).into_iter();
        let wrong = wrong.map(|message| format!("segment {index}: {message}")).collect();
        errors.extend(invalid_each(path, segment, wrong));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    fn messages(errors: &ErrorList) -> Vec<String> {
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn requests_are_checked() {
        let check = |spec: Value, expected: &[&str]| {
            assert_eq!(messages(&validate(&json!({"metadata": {"name": "a"}, "spec": spec}))), expected);
        };
        check(json!({"driver": "D.example.com", "limit": 1}), &[]);
        let long = "x".repeat(254);
        check(
            json!({"driver": long, "limit": 1}),
            &[&format!("spec.driver: Invalid value: \"{long}\": must be no more than 253 bytes")],
        );
        check(
            json!({"poolName": "a//b", "limit": 0}),
            &[
                "spec.driver: Required value",
                "spec.poolName: Invalid value: \"a//b\": segment 1: must not be empty",
                "spec.limit: Invalid value: 0: must be greater than or equal to 1",
            ],
        );
    }

    #[test]
    fn a_request_is_answered_once() {
        let request =
            |status: Value| json!({"metadata": {"name": "a", "resourceVersion": "1"}, "status": status});
        let check = |new: Value, old: Value, expected: &[&str]| {
            assert_eq!(messages(&validate_status_update(&request(new), &request(old))), expected);
        };
        check(json!({"poolCount": 1}), Value::Null, &[]);
        check(
            json!({"poolCount": 2}),
            json!({"poolCount": 1}),
            &[r#"status: Invalid value: {"PoolCount":2,"Pools":null,"Conditions":null}: field is immutable"#],
        );
        check(
            json!({"poolCount": -1, "pools": [{"generation": -1}]}),
            Value::Null,
            &[
                "status.poolCount: Invalid value: -1: must be greater than or equal to 0",
                "status.pools[0].driver: Required value",
                "status.pools[0].poolName: Required value",
                "status.pools[0].generation: Invalid value: -1: must be greater than or equal to 0",
            ],
        );
        check(json!({}), Value::Null, &["status.poolCount: Required value"]);
    }
}
