//! Validates small formats: ports, keys, environment variables, percentages, domain names. A function that takes only a
//! text returns error messages; one that takes a path returns field errors. Both are empty for a valid value.

use super::names::{
    DNS1123_SUBDOMAIN_MAX_LENGTH, empty_error, inclusive_range_error, is_dns1123_label, is_dns1123_subdomain,
    max_length_error, regex_error,
};
use crate::{ErrorList, FieldError, FieldPath};

const C_IDENTIFIER_MESSAGE: &str = "a valid C identifier must start with alphabetic character or '_', followed by a \
                                    string of alphanumeric characters or '_'";
const HTTP_HEADER_MESSAGE: &str = "a valid HTTP header must consist of alphanumeric characters or '-'";
const RELAXED_ENV_VAR_MESSAGE: &str = "a valid environment variable name must consist only of printable ASCII \
                                       characters other than '='";
const CONFIG_MAP_KEY_MESSAGE: &str =
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.'";
const PERCENT_MESSAGE: &str = "a valid percent string must be a numeric string followed by an ending '%'";
const HTTP_PATH_PATTERN: &str = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+";
const DECIMAL_INTEGER_MESSAGE: &str = "must be a valid decimal integer in canonical form";

/// The error for a negative value in a field that must not be negative.
pub const IS_NEGATIVE_ERROR: &str = "must be greater than or equal to 0";

/// Validates a port number, 1 to 65535.
pub fn is_valid_port_num(port: i64) -> Vec<String> {
    is_in_range(port, 1, 65535)
}

/// Validates a number against inclusive bounds.
pub fn is_in_range(value: i64, low: i64, high: i64) -> Vec<String> {
    if (low..=high).contains(&value) { Vec::new() } else { vec![inclusive_range_error(low, high)] }
}

/// Validates a Unix group id.
pub fn is_valid_group_id(gid: i64) -> Vec<String> {
    is_in_range(gid, 0, i32::MAX.into())
}

/// Validates a Unix user id.
pub fn is_valid_user_id(uid: i64) -> Vec<String> {
    is_in_range(uid, 0, i32::MAX.into())
}

/// Validates a port's name (RFC 6335, lower case only).
pub fn is_valid_port_name(port: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if port.len() > 15 {
        errors.push(max_length_error(15));
    }
    let allowed = |byte: u8| byte == b'-' || byte.is_ascii_lowercase() || byte.is_ascii_digit();
    if port.is_empty() || !port.bytes().all(allowed) {
        errors.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned());
    }
    if !port.bytes().any(|byte| byte.is_ascii_lowercase()) {
        errors.push("must contain at least one letter (a-z)".to_owned());
    }
    if port.contains("--") {
        errors.push("must not contain consecutive hyphens".to_owned());
    }
    if port.starts_with('-') || port.ends_with('-') {
        errors.push("must not begin or end with a hyphen".to_owned());
    }
    errors
}

/// Validates a whole percentage: digits and `%`.
pub fn is_valid_percent(percent: &str) -> Vec<String> {
    let digits = percent.strip_suffix('%').unwrap_or_default();
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return vec![regex_error(PERCENT_MESSAGE, "[0-9]+%", &["1%", "93%"])];
    }
    Vec::new()
}

/// Validates a decimal integer in canonical form.
pub fn is_decimal_integer(value: &str) -> Vec<String> {
    if value.is_empty() {
        return vec![empty_error()];
    }
    let digits = value.strip_prefix('-').unwrap_or(value);
    let canonical = value == "0"
        || (digits.starts_with(|c: char| ('1'..='9').contains(&c))
            && digits.bytes().all(|byte| byte.is_ascii_digit()));
    if canonical { Vec::new() } else { vec![DECIMAL_INTEGER_MESSAGE.to_owned()] }
}

/// Validates a C identifier.
pub fn is_c_identifier(value: &str) -> Vec<String> {
    let word = |byte: u8| byte == b'_' || byte.is_ascii_alphanumeric();
    if value.bytes().all(word) && !value.is_empty() && !value.starts_with(|c: char| c.is_ascii_digit()) {
        return Vec::new();
    }
    vec![regex_error(C_IDENTIFIER_MESSAGE, "[A-Za-z_][A-Za-z0-9_]*", &["my_name", "MY_NAME", "MyName"])]
}

/// Validates an HTTP header's name.
pub fn is_http_header_name(value: &str) -> Vec<String> {
    if !value.is_empty() && value.bytes().all(|byte| byte == b'-' || byte.is_ascii_alphanumeric()) {
        return Vec::new();
    }
    vec![regex_error(HTTP_HEADER_MESSAGE, "[-A-Za-z0-9]+", &["X-Header-Name"])]
}

/// Validates an environment variable's name: printable ASCII without `=`.
pub fn is_relaxed_env_var_name(value: &str) -> Vec<String> {
    if value.is_empty() {
        return vec![format!("environment variable name {}", empty_error())];
    }
    if value.chars().any(|c| !(' '..='~').contains(&c) || c == '=') {
        return vec![RELAXED_ENV_VAR_MESSAGE.to_owned()];
    }
    Vec::new()
}

/// Validates a key of a ConfigMap or a Secret.
pub fn is_config_map_key(value: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if value.len() > DNS1123_SUBDOMAIN_MAX_LENGTH {
        errors.push(max_length_error(DNS1123_SUBDOMAIN_MAX_LENGTH));
    }
    if !is_key_like(value) {
        errors.push(regex_error(
            CONFIG_MAP_KEY_MESSAGE,
            "[-._a-zA-Z0-9]+",
            &["key.name", "KEY_NAME", "key-name"],
        ));
    }
    errors.extend(has_parent_directory_prefix(value));
    errors
}

/// Validates a domain name of at least two segments, each a DNS label; a trailing dot is allowed.
pub fn is_fully_qualified_domain_name(path: &FieldPath, name: &str) -> ErrorList {
    if name.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    let name = name.strip_suffix('.').unwrap_or(name);
    let errors = is_dns1123_subdomain(name);
    if !errors.is_empty() {
        return vec![FieldError::invalid(path, name, errors.join(","))];
    }
    if name.split('.').count() < 2 {
        let detail = "should be a domain with at least two segments separated by dots";
        return vec![FieldError::invalid(path, name, detail)];
    }
    for label in name.split('.') {
        let errors = is_dns1123_label(label);
        if !errors.is_empty() {
            return vec![FieldError::invalid(path, label, errors.join(","))];
        }
    }
    Vec::new()
}

/// Validates a domain name of at least three segments, such as the name of a webhook.
pub fn is_fully_qualified_name(path: &FieldPath, name: &str) -> ErrorList {
    if name.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    let errors = is_dns1123_subdomain(name);
    if !errors.is_empty() {
        return vec![FieldError::invalid(path, name, errors.join(","))];
    }
    if name.split('.').count() < 3 {
        let detail = "should be a domain with at least three segments separated by dots";
        return vec![FieldError::invalid(path, name, detail)];
    }
    Vec::new()
}

/// Validates a path under a domain: `acme.io/foo`.
pub fn is_domain_prefixed_path(path: &FieldPath, value: &str) -> ErrorList {
    if value.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    let (host, rest) = value.split_once('/').unwrap_or_default();
    if host.is_empty() || rest.is_empty() {
        let detail = "must be a domain-prefixed path (such as \"acme.io/foo\")";
        return vec![FieldError::invalid(path, value, detail)];
    }
    let mut errors: ErrorList = is_dns1123_subdomain(host)
        .into_iter()
        .map(|message| FieldError::invalid(path, host, message))
        .collect();
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&byte);
    if !rest.bytes().all(allowed) {
        errors.push(FieldError::invalid(path, rest, regex_error("Invalid path", HTTP_PATH_PATTERN, &[])));
    }
    errors
}

/// Validates a number that must not be negative.
pub fn validate_nonnegative_field(value: i64, path: &FieldPath) -> ErrorList {
    if value < 0 { vec![FieldError::invalid(path, value, IS_NEGATIVE_ERROR)] } else { Vec::new() }
}

fn is_key_like(value: &str) -> bool {
    !value.is_empty()
        && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_'))
}

/// Such keys become file names, which must stay in their directory.
fn has_parent_directory_prefix(value: &str) -> Option<String> {
    match value {
        "." => Some("must not be '.'".to_owned()),
        ".." => Some("must not be '..'".to_owned()),
        _ if value.starts_with("..") => Some("must not start with '..'".to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Check = fn(&str) -> Vec<String>;

    #[test]
    fn formats_are_right_or_say_why_not() {
        let rows: &[(Check, &str, &[&str])] = &[
            (is_valid_port_name, "http-1", &[]),
            (
                is_valid_port_name,
                "",
                &[
                    "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
                    "must contain at least one letter (a-z)",
                ],
            ),
            (
                is_valid_port_name,
                "-1--2",
                &[
                    "must contain at least one letter (a-z)",
                    "must not contain consecutive hyphens",
                    "must not begin or end with a hyphen",
                ],
            ),
            (is_valid_percent, "100%", &[]),
            (is_relaxed_env_var_name, "a b#1", &[]),
            (is_relaxed_env_var_name, "a=b", &[RELAXED_ENV_VAR_MESSAGE]),
            (is_relaxed_env_var_name, "", &["environment variable name must be non-empty"]),
            (is_config_map_key, "a.b_C-1", &[]),
            (is_config_map_key, "..a", &["must not start with '..'"]),
            (is_config_map_key, ".", &["must not be '.'"]),
            (is_decimal_integer, "-10", &[]),
            (is_decimal_integer, "0", &[]),
            (is_c_identifier, "_a1", &[]),
        ];
        for (check, value, messages) in rows {
            assert_eq!(check(value), *messages, "{value}");
        }
        for value in ["", "%", "1", "a%", "1%%"] {
            assert_eq!(is_valid_percent(value).len(), 1, "{value}");
        }
        for value in ["", "-", "-0", "01", "+1", "1a"] {
            assert_eq!(is_decimal_integer(value).len(), 1, "{value}");
        }
        assert_eq!(is_valid_port_num(0), ["must be between 1 and 65535, inclusive"]);
    }
}
