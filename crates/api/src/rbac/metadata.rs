//! Validates the metadata of this group's kinds: names may be anything that fits into a path.

use pintle_machinery::{
    ErrorList, FieldPath, Value,
    validation::{validate_object_meta, validate_path_segment_name},
};

/// Validates the metadata of a new object.
pub(super) fn validate(object: &Value, namespaced: bool) -> ErrorList {
    let name = |name: &str, _prefix| validate_path_segment_name(name, false);
    validate_object_meta(object, namespaced, name, &FieldPath::new("metadata"))
}
