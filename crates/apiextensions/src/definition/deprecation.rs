//! Validates the deprecation warnings of versions.

use super::{go_json, path::Path};
use pintle_go_forms::is_print;
use pintle_machinery::{ErrorList, FieldError, Value, ValueExt};

const MAX_LENGTH: usize = 256;

/// Validates a version's `deprecationWarning`.
pub(super) fn validate_deprecation(version: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let Some(warning) = version.field("deprecationWarning").and_then(Value::as_str) else { return };
    let mut wrong = |detail: String| {
        let error =
            FieldError::invalid(&path.child("deprecationWarning").field(), warning, detail).of_named_type();
        errors.push(go_json::as_json(error));
    };
    if !version.bool_at("deprecated") {
        return wrong("can only be set for deprecated versions".to_owned());
    }
    if warning.len() > MAX_LENGTH {
        wrong(format!("must be <= {MAX_LENGTH} characters long"));
    }
    if warning.is_empty() {
        wrong("must not be an empty string".to_owned());
    }
    // The warning is sent in a header.
    if let Some((at, _)) = warning.char_indices().find(|(_, c)| !is_print(*c)) {
        wrong(format!(
            "must only contain printable UTF-8 characters; non-printable character found at index {at}"
        ));
    }
}
