//! The metadata of the kinds of this group: their names may be anything that fits into a path.

use pintle_machinery::{
    ErrorList, FieldPath, Value,
    validation::{validate_object_meta, validate_path_segment_name},
};

/// The name of a role or binding. A prefix of names is held to the rule of whole names.
pub(super) fn validate_name(name: &str, _prefix: bool) -> Vec<String> {
    validate_path_segment_name(name, false)
}

/// What is wrong with the metadata of a new object.
pub(super) fn validate(object: &Value, namespaced: bool) -> ErrorList {
    validate_object_meta(object, namespaced, validate_name, &FieldPath::new("metadata"))
}
