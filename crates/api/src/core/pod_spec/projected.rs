//! Validates volumes made of several sources, and files with fields of the pod
//! (<https://kubernetes.io/docs/concepts/storage/projected-volumes/>).
//!
//! The features of cluster trust bundle and pod certificate sources are disabled. Only specs that were stored with such
//! sources have them, so they are counted but not validated.

use super::field_reference::{self, Place};
use super::volume_sources::{validate_key_to_path, validate_mode};
use super::{PodValidationOptions, paths};
use pintle_machinery::error_list::is_enough;
use pintle_machinery::{ErrorList, FieldError, FieldPath, Value, ValueExt};
use std::collections::HashSet;

const CONFLICT: &str = "conflicting duplicate paths";
const MIN_TOKEN_SECONDS: i64 = 10 * 60;
const MAX_TOKEN_SECONDS: i64 = 1 << 32;

/// Validates a `downwardAPI` volume.
pub(super) fn validate_downward_api(source: &Value, path: &FieldPath) -> ErrorList {
    let mut errors: ErrorList = validate_mode(source, "defaultMode", path).into_iter().collect();
    for file in source.items_at("items") {
        errors.extend(validate_file(file, path));
    }
    errors
}

/// Validates a file with a field of the pod. As in the reference, errors have the path of the source.
fn validate_file(file: &Value, path: &FieldPath) -> ErrorList {
    let file_path = file.str_at("path");
    let mut errors = crate::field_checks::required(file, "path", path);
    errors.extend(paths::validate_local_non_reserved(file_path, &path.child("path")));
    match (file.at("fieldRef"), file.at("resourceFieldRef")) {
        (Some(field), resource) => {
            errors.extend(field_reference::validate(field, Place::Volume, &path.child("fieldRef")));
            if resource.is_some() {
                let detail = "fieldRef and resourceFieldRef can not be specified simultaneously";
                errors.push(FieldError::invalid(path, "resource", detail));
            }
        }
        (None, Some(resource)) => {
            let path = path.child("resourceFieldRef");
            errors.extend(field_reference::validate_resource(resource, Place::Volume, &path));
        }
        (None, None) => {
            errors.push(FieldError::required(path, "one of fieldRef and resourceFieldRef is required"));
        }
    }
    errors.extend(validate_mode(file, "mode", path));
    errors
}

/// Validates a `projected` volume.
pub(super) fn validate(source: &Value, options: &PodValidationOptions, path: &FieldPath) -> ErrorList {
    let mut errors: ErrorList = validate_mode(source, "defaultMode", path).into_iter().collect();
    let mut seen = HashSet::new();
    for (index, projection) in source.items_at("sources").iter().enumerate() {
        if is_enough(&errors) {
            break;
        }
        let source_path = path.child("sources").index(index);
        let mut count = 0;
        for field in ["secret", "configMap"] {
            let Some(object) = projection.at(field) else { continue };
            count += 1;
            errors.extend(validate_object(object, &mut seen, path, &source_path.child(field)));
        }
        if let Some(downward) = projection.at("downwardAPI") {
            count += 1;
            for file in downward.items_at("items") {
                errors.extend(validate_file(file, &source_path.child("downwardAPI")));
                let file_path = file.str_at("path");
                if !file_path.is_empty() && !seen.insert(file_path) {
                    errors.push(FieldError::invalid(path, file_path, CONFLICT));
                }
            }
        }
        if let Some(token) = projection.at("serviceAccountToken") {
            count += 1;
            let token_path = source_path.child("serviceAccountToken");
            errors.extend(validate_token(token, options, path, &token_path));
        }
        let rest = ["clusterTrustBundle", "podCertificate"];
        count += rest.iter().filter(|field| projection.at(field).is_some()).count();
        if count > 1 {
            let detail = "may not specify more than 1 volume type per source";
            errors.push(FieldError::forbidden(&source_path, detail));
        }
    }
    errors
}

fn validate_object<'a>(
    object: &'a Value,
    seen: &mut HashSet<&'a str>,
    volume_path: &FieldPath,
    path: &FieldPath,
) -> ErrorList {
    let mut errors = crate::field_checks::required(object, "name", path);
    for (index, item) in object.items_at("items").iter().enumerate() {
        if is_enough(&errors) {
            break;
        }
        errors.extend(validate_key_to_path(item, &path.child("items").index(index)));
        let item_path = item.str_at("path");
        if !item_path.is_empty() && !seen.insert(item_path) {
            errors.push(FieldError::invalid(volume_path, object.str_at("name"), CONFLICT));
        }
    }
    errors
}

fn validate_token(
    token: &Value,
    options: &PodValidationOptions,
    volume_path: &FieldPath,
    path: &FieldPath,
) -> ErrorList {
    let mut errors = ErrorList::new();
    let seconds = token.i64_at("expirationSeconds").unwrap_or_default();
    let seconds_path = path.child("expirationSeconds");
    if seconds < MIN_TOKEN_SECONDS {
        let detail = "may not specify a duration less than 10 minutes";
        errors.push(FieldError::invalid(&seconds_path, seconds, detail));
    }
    if seconds > MAX_TOKEN_SECONDS {
        let detail = "may not specify a duration larger than 2^32 seconds";
        errors.push(FieldError::invalid(&seconds_path, seconds, detail));
    }
    let file_path = volume_path.child("path");
    match token.str_at("path") {
        "" => errors.push(FieldError::required(&file_path, "")),
        _ if options.allow_non_local_projected_token_path => {}
        value => errors.extend(paths::validate_local_non_reserved(value, &file_path)),
    }
    errors
}
