//! Validates the names in this group's kinds.

use crate::field_checks::invalid_each;
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, Value,
    validation::{is_c_identifier, is_dns1123_label, is_dns1123_subdomain},
};

pub(super) use crate::core::pod_spec::validate_csi_driver_name as validate_driver_name;

/// The maximum length of an attribute or capacity name, in bytes: a domain, a slash and an identifier.
pub(super) const QUALIFIED_NAME_MAX_LENGTH: usize = 63 + 1 + IDENTIFIER_MAX_LENGTH;
const IDENTIFIER_MAX_LENGTH: usize = 32;
const POOL_NAME_MAX_LENGTH: usize = 253;

/// Validates the name of a device, a request or a counter set.
pub(super) fn validate_label(name: &str, path: &FieldPath) -> ErrorList {
    invalid_each(path, name, is_dns1123_label(name))
}

/// Validates the name of a device class, which is required.
pub(super) fn validate_class_name(name: &str, path: &FieldPath) -> ErrorList {
    if name.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    invalid_each(path, name, is_dns1123_subdomain(name))
}

/// Validates the name of a pool: subdomains separated by slashes.
pub(super) fn validate_pool_name(name: &str, path: &FieldPath) -> ErrorList {
    if name.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    let mut errors = ErrorList::new();
    if name.len() > POOL_NAME_MAX_LENGTH {
        errors.push(FieldError::too_long(path, POOL_NAME_MAX_LENGTH));
    }
    errors.extend(name.split('/').flat_map(|part| invalid_each(path, part, is_dns1123_subdomain(part))));
    errors
}

/// Validates the name of an attribute or capacity, with or without a domain.
pub(super) fn validate_qualified_name(name: &str, path: &FieldPath) -> ErrorList {
    match name.split('/').collect::<Vec<_>>().as_slice() {
        [name] => validate_identifier(name, path),
        [domain, name] => {
            let mut errors = match domain.is_empty() {
                true => vec![FieldError::invalid(path, "", "the domain must not be empty")],
                false => validate_driver_name(domain, path),
            };
            errors.extend(match name.is_empty() {
                true => vec![FieldError::invalid(path, "", "the name must not be empty")],
                false => validate_identifier(name, path),
            });
            errors
        }
        // As in the reference, further slashes are accepted.
        _ => ErrorList::new(),
    }
}

/// Validates the name of an attribute or capacity with its domain.
pub(super) fn validate_fully_qualified_name(name: &str, path: &FieldPath) -> ErrorList {
    let mut errors = validate_qualified_name(name, path);
    if !name.contains('/') {
        let detail = "a fully qualified name must be a domain and a name separated by a slash";
        errors.push(FieldError::invalid(path, name, detail).of_named_type());
    }
    errors
}

fn validate_identifier(name: &str, path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    if name.len() > IDENTIFIER_MAX_LENGTH {
        errors.push(FieldError::too_long(path, IDENTIFIER_MAX_LENGTH));
    }
    errors.extend(invalid_each(path, name, is_c_identifier(name)));
    errors
}

/// Validates the identifier of a share of a device: a UUID in its canonical form.
pub(super) fn validate_share_id(value: Option<&Value>, path: &FieldPath) -> ErrorList {
    let Some(id) = value.map(|value| value.as_str().unwrap_or_default()) else {
        return ErrorList::new();
    };
    if let Err(error) = parse_uuid(id) {
        return vec![FieldError::invalid(path, id, format!("error validating uid: {error}"))];
    }
    if id.len() != UUID_LENGTH || id.chars().any(|character| character.is_ascii_uppercase()) {
        let detail = "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase \
                      hexadecimal characters";
        return vec![FieldError::invalid(path, id, detail)];
    }
    ErrorList::new()
}

const UUID_LENGTH: usize = 36;

/// Requires a UUID in any of its forms; the error is the message.
fn parse_uuid(text: &str) -> Result<(), String> {
    const URN: &str = "urn:uuid:";
    const MALFORMED: &str = "invalid UUID format";
    let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let dashed = if text.len() == UUID_LENGTH + URN.len() {
        let prefix = text.get(..URN.len()).unwrap_or_default();
        if !prefix.eq_ignore_ascii_case(URN) {
            return Err(format!("invalid urn prefix: {}", pintle_go_forms::quote(prefix)));
        }
        text.get(URN.len()..).unwrap_or_default()
    } else if text.len() == UUID_LENGTH + 2 {
        let inner = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
        inner.ok_or("invalid bracketed UUID format")?
    } else if text.len() == 32 {
        return if is_hex(text) { Ok(()) } else { Err(MALFORMED.to_owned()) };
    } else if text.len() == UUID_LENGTH {
        text
    } else {
        return Err(format!("invalid UUID length: {}", text.len()));
    };
    let parts: Vec<&str> = dashed.split('-').collect();
    let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
    if lengths == [8, 4, 4, 4, 12] && parts.into_iter().all(is_hex) {
        return Ok(());
    }
    Err(MALFORMED.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    #[test]
    fn names_are_checked() {
        let check = |validate: fn(&str, &FieldPath) -> ErrorList, name: &str, expected: usize| {
            assert_eq!(validate(name, &FieldPath::new("f")).len(), expected, "{name}");
        };
        check(validate_pool_name, "", 1);
        check(validate_pool_name, "a/b.c", 0);
        check(validate_pool_name, "A//b", 2);
        check(validate_qualified_name, "model", 0);
        check(validate_qualified_name, "a b", 1);
        check(validate_qualified_name, "example.com/model", 0);
        check(validate_qualified_name, "/", 2);
        check(validate_qualified_name, "a/b/c", 0);
        check(validate_fully_qualified_name, "model", 1);
        check(validate_fully_qualified_name, "example.com/model", 0);
        check(validate_class_name, "", 1);
    }

    #[test]
    fn share_ids_are_uuids() {
        let check = |id: &str, detail: &str| {
            let errors = validate_share_id(Some(&json!(id)), &FieldPath::new("f"));
            assert_eq!(errors.first().map_or("", |error| error.detail.as_str()), detail, "{id}");
        };
        check("9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d", "");
        check("9b1deb4d", "error validating uid: invalid UUID length: 8");
        check("9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcbzz", "error validating uid: invalid UUID format");
        let normalized = "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with \
                          lowercase hexadecimal characters";
        check("9B1DEB4D-3b7d-4bad-9bdd-2b0d7b3dcb6d", normalized);
        check("{9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d}", normalized);
    }
}
