//! Names (<https://kubernetes.io/docs/concepts/overview/working-with-objects/names/>). Each function returns what is
//! wrong with a text, in the words clients see; nothing when it is right.

/// The longest DNS label.
pub const DNS1123_LABEL_MAX_LENGTH: usize = 63;
/// The longest DNS subdomain.
pub const DNS1123_SUBDOMAIN_MAX_LENGTH: usize = 253;

const LABEL_MESSAGE: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', \
                             and must start and end with an alphanumeric character";
const LABEL_PATTERN: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN_MESSAGE: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, \
                                 '-' or '.', and must start and end with an alphanumeric character";
const SUBDOMAIN_PATTERN: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";

/// A lower-case RFC 1123 label.
pub fn is_dns1123_label(value: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if value.len() > DNS1123_LABEL_MAX_LENGTH {
        errors.push(max_length_error(DNS1123_LABEL_MAX_LENGTH));
    }
    if !matches_label(value) {
        if matches_subdomain(value) {
            errors.push("must not contain dots".to_owned());
        } else {
            errors.push(regex_error(LABEL_MESSAGE, LABEL_PATTERN, &["my-name", "123-abc"]));
        }
    }
    errors
}

/// A lower-case RFC 1123 subdomain.
pub fn is_dns1123_subdomain(value: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if value.len() > DNS1123_SUBDOMAIN_MAX_LENGTH {
        errors.push(max_length_error(DNS1123_SUBDOMAIN_MAX_LENGTH));
    }
    if !matches_subdomain(value) {
        errors.push(regex_error(SUBDOMAIN_MESSAGE, SUBDOMAIN_PATTERN, &["example.com"]));
    }
    errors
}

/// The usual rule for object names; `prefix` when a generated suffix follows, which lets a dash stand last.
pub fn name_is_dns_subdomain(name: &str, prefix: bool) -> Vec<String> {
    if prefix { is_dns1123_subdomain(mask_trailing_dash(name).as_ref()) } else { is_dns1123_subdomain(name) }
}

/// The rule for names that are DNS labels.
pub fn name_is_dns_label(name: &str, prefix: bool) -> Vec<String> {
    if prefix { is_dns1123_label(mask_trailing_dash(name).as_ref()) } else { is_dns1123_label(name) }
}

/// "must be no more than N bytes".
pub fn max_length_error(length: usize) -> String {
    format!("must be no more than {length} bytes")
}

/// How a failed pattern is told, with examples.
pub fn regex_error(message: &str, pattern: &str, examples: &[&str]) -> String {
    if examples.is_empty() {
        return format!("{message} (regex used for validation is '{pattern}')");
    }
    let examples: Vec<String> = examples.iter().map(|example| format!("'{example}'")).collect();
    format!("{message} (e.g. {}, regex used for validation is '{pattern}')", examples.join(",  or "))
}

fn mask_trailing_dash(name: &str) -> std::borrow::Cow<'_, str> {
    match name.strip_suffix('-') {
        Some(rest) if !rest.is_empty() => format!("{rest}a").into(),
        _ => name.into(),
    }
}

fn matches_label(value: &str) -> bool {
    let bytes = value.as_bytes();
    let alphanumeric = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    bytes.first().is_some_and(alphanumeric)
        && bytes.last().is_some_and(alphanumeric)
        && bytes.iter().all(|byte| alphanumeric(byte) || *byte == b'-')
}

fn matches_subdomain(value: &str) -> bool {
    value.split('.').all(matches_label)
}
