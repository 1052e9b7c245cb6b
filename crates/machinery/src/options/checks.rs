//! Validation rules that several kinds of options share.

use crate::{ErrorList, FieldError, FieldPath};
use pintle_go_forms::{is_print, unicode_name};

const FIELD_MANAGER_MAX_LENGTH: usize = 128;

/// Validates a field manager's name: short and printable.
pub fn validate_field_manager(manager: &str, path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    if manager.len() > FIELD_MANAGER_MAX_LENGTH {
        errors.push(FieldError::too_long(path, FIELD_MANAGER_MAX_LENGTH));
    }
    for (position, c) in manager.char_indices().filter(|(_, c)| !is_print(*c)) {
        let detail = format!("invalid character {} (at position {position})", unicode_name(c));
        errors.push(FieldError::invalid(path, manager, detail));
    }
    errors
}

/// Validates `dryRun`: only `All` is allowed, any number of times.
pub fn validate_dry_run(dry_run: &[String], path: &FieldPath) -> ErrorList {
    if dry_run.iter().all(|value| value == "All") {
        return ErrorList::new();
    }
    vec![FieldError::not_supported(path, dry_run.to_vec(), &["All"])]
}

/// Validates `fieldValidation`: one of three values, or empty.
pub fn validate_field_validation(value: &str, path: &FieldPath) -> ErrorList {
    let supported = ["", "Ignore", "Strict", "Warn"];
    if supported.contains(&value) {
        return ErrorList::new();
    }
    vec![FieldError::not_supported(path, value, &supported).of_plain_text()]
}
