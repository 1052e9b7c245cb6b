//! Rules that many kinds share.

pub(crate) use pintle_registry::keep;

use pintle_go_forms::quote;
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, Status, Value, ValueExt,
    meta::ObjectMeta,
    validation::{
        DNS1123_SUBDOMAIN_MAX_LENGTH, max_bytes_error, max_length_error, name_is_dns_subdomain,
        semantically_equal, validate_object_meta, validate_object_meta_accessor,
        validate_object_meta_accessor_update, validate_object_meta_update, validate_path_segment_name,
    },
};

/// Checks a name in a body by which another object is read, as kube-apiserver's registry checks those of paths.
pub(crate) fn name_parameter(name: &str) -> Result<(), Status> {
    if name.is_empty() {
        return Err(Status::bad_request("Name parameter required."));
    }
    match validate_path_segment_name(name, false) {
        problems if problems.is_empty() => Ok(()),
        problems => {
            let why = format!("Name parameter invalid: {}: {}", quote(name), problems.join(";"));
            Err(Status::bad_request(why))
        }
    }
}

/// Validates the metadata of a new object whose name is a DNS subdomain.
pub(crate) fn metadata(object: &Value, namespaced: bool) -> ErrorList {
    validate_object_meta(object, namespaced, name_is_dns_subdomain, &FieldPath::new("metadata"))
}

/// As [`metadata`], for the kinds whose finalizers need no domain.
pub(crate) fn accessor_metadata(object: &Value, namespaced: bool) -> ErrorList {
    validate_object_meta_accessor(object, namespaced, name_is_dns_subdomain, &FieldPath::new("metadata"))
}

/// As [`metadata`], for the kinds whose declared rules validate the generated name but not its prefix.
pub(crate) fn metadata_of_any_prefix(object: &Value, namespaced: bool) -> ErrorList {
    let name = |name: &str, is_prefix| match is_prefix {
        true => Vec::new(),
        false => in_bytes(name_is_dns_subdomain(name, false), DNS1123_SUBDOMAIN_MAX_LENGTH),
    };
    validate_object_meta(object, namespaced, name, &FieldPath::new("metadata"))
}

/// The messages of a format, where declared rules count the length in bytes.
pub(crate) fn in_bytes(mut messages: Vec<String>, max_length: usize) -> Vec<String> {
    let too_long = max_length_error(max_length);
    for message in messages.iter_mut().filter(|message| **message == too_long) {
        *message = max_bytes_error(max_length);
    }
    messages
}

/// As [`metadata_update`], for the kinds whose finalizers need no domain.
pub(crate) fn accessor_metadata_update(object: &Value, old: &Value) -> ErrorList {
    validate_object_meta_accessor_update(object, old, &FieldPath::new("metadata"))
}

/// Validates an update of metadata.
pub(crate) fn metadata_update(object: &Value, old: &Value) -> ErrorList {
    validate_object_meta_update(object, old, &FieldPath::new("metadata"))
}

/// Restores the metadata, for kinds whose status writes do not change metadata.
pub(crate) fn keep_metadata(object: &mut Value, old: &Value) {
    const FIELDS: [&str; 7] = [
        "deletionTimestamp",
        "generation",
        "selfLink",
        "labels",
        "annotations",
        "finalizers",
        "ownerReferences",
    ];
    for field in FIELDS {
        keep(object, old, &format!("metadata.{field}"));
    }
}

/// Whether a write changes the value at a path.
pub(crate) fn differs(object: &Value, old: &Value, path: &str) -> bool {
    !semantically_equal(value_at(object, path), value_at(old, path))
}

/// The value at a path, null when absent.
pub(crate) fn value_at<'a>(object: &'a Value, path: &str) -> &'a Value {
    object.at(path).unwrap_or(&Value::Null)
}

/// Increments the generation when `spec` changed.
pub(crate) fn count_generation(object: &mut Value, old: &Value) {
    count_generation_if(object, old, differs(object, old, "spec"));
}

/// Increments the generation if `changed`, otherwise keeps the stored one.
pub(crate) fn count_generation_if(object: &mut Value, old: &Value, changed: bool) {
    object.set_generation(old.generation() + i64::from(changed));
}

/// An error for a field whose value would not help in the message.
pub(crate) fn invalid_whole(path: &FieldPath, detail: &str) -> FieldError {
    FieldError { bad_value: None, ..FieldError::invalid(path, Value::Null, detail) }
}

/// Requires a number that is not negative, if present.
pub(crate) fn nonnegative(object: &Value, path: &str) -> ErrorList {
    match object.i64_at(path) {
        Some(number) => nonnegative_number(number, &FieldPath::new(path)),
        None => ErrorList::new(),
    }
}

/// Requires a number that is not negative.
pub(crate) fn nonnegative_number(number: i64, path: &FieldPath) -> ErrorList {
    if number >= 0 {
        return ErrorList::new();
    }
    vec![FieldError::invalid(path, number, "must be greater than or equal to 0")]
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    #[test]
    fn generation_follows_the_spec() {
        let check = |new: Value, old: Value, generation: i64| {
            let mut new = new;
            count_generation(&mut new, &old);
            assert_eq!(new.generation(), generation);
        };
        check(json!({"spec": {"a": 1}}), json!({"metadata": {"generation": 3}, "spec": {"a": 2}}), 4);
        check(
            json!({"metadata": {"generation": 9}, "spec": {"a": []}}),
            json!({"metadata": {"generation": 3}, "spec": {}}),
            3,
        );
    }
}
