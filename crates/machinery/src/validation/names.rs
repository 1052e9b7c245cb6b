//! Validates names (<https://kubernetes.io/docs/concepts/overview/working-with-objects/names/>). Each function returns
//! the messages that clients see; the list is empty for a valid name.

use std::borrow::Cow;

/// The maximum length of a DNS label, in bytes.
pub const DNS1123_LABEL_MAX_LENGTH: usize = 63;
/// The maximum length of a DNS subdomain, in bytes.
pub const DNS1123_SUBDOMAIN_MAX_LENGTH: usize = 253;

const LABEL_MESSAGE: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', \
                             and must start and end with an alphanumeric character";
const LABEL_PATTERN: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN_MESSAGE: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, \
                                 '-' or '.', and must start and end with an alphanumeric character";
const SUBDOMAIN_PATTERN: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";

const UNDERSCORE_SUBDOMAIN_MESSAGE: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must \
     start and end with an alphanumeric character";
const UNDERSCORE_SUBDOMAIN_PATTERN: &str =
    r"_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*";
const DNS1035_LABEL_MESSAGE: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', \
                                     start with an alphabetic character, and end with an alphanumeric character";
const DNS1035_LABEL_PATTERN: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";
const WILDCARD_MESSAGE: &str = "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, \
                                which must consist of lower case alphanumeric characters, '-' or '.' and end with an \
                                alphanumeric character";
const WILDCARD_PATTERN: &str = r"\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";

/// Validates a lower-case RFC 1123 label.
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

/// Validates a lower-case RFC 1123 subdomain.
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

/// Validates an RFC 1123 subdomain in any case.
pub fn is_dns1123_subdomain_caseless(value: &str) -> Vec<String> {
    const MESSAGE: &str = "an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', and must start and \
                           end with an alphanumeric character";
    let mut errors = Vec::new();
    if value.len() > DNS1123_SUBDOMAIN_MAX_LENGTH {
        errors.push(max_length_error(DNS1123_SUBDOMAIN_MAX_LENGTH));
    }
    if !matches_subdomain(&value.to_ascii_lowercase()) {
        errors.push(regex_error(MESSAGE, SUBDOMAIN_PATTERN, &["Example.com"]));
    }
    errors
}

/// Validates a lower-case RFC 1123 subdomain whose labels may contain and start with an underscore.
pub fn is_dns1123_subdomain_with_underscore(value: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if value.len() > DNS1123_SUBDOMAIN_MAX_LENGTH {
        errors.push(max_length_error(DNS1123_SUBDOMAIN_MAX_LENGTH));
    }
    let matches_underscore_label = |label: &str| {
        let rest = label.strip_prefix('_').unwrap_or(label).as_bytes();
        starts_and_ends(rest, is_lower_alphanumeric)
            && rest.iter().all(|byte| is_lower_alphanumeric(*byte) || matches!(byte, b'-' | b'_'))
    };
    if !value.split('.').all(matches_underscore_label) {
        errors.push(regex_error(
            UNDERSCORE_SUBDOMAIN_MESSAGE,
            UNDERSCORE_SUBDOMAIN_PATTERN,
            &["example.com"],
        ));
    }
    errors
}

/// Validates an RFC 1035 label: as an RFC 1123 label, but it starts with a letter.
pub fn is_dns1035_label(value: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if value.len() > DNS1123_LABEL_MAX_LENGTH {
        errors.push(max_length_error(DNS1123_LABEL_MAX_LENGTH));
    }
    if !matches_label(value) || !value.starts_with(|c: char| c.is_ascii_lowercase()) {
        errors.push(regex_error(DNS1035_LABEL_MESSAGE, DNS1035_LABEL_PATTERN, &["my-name", "abc-123"]));
    }
    errors
}

/// Validates `*.` followed by a subdomain.
pub fn is_wildcard_dns1123_subdomain(value: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if value.len() > DNS1123_SUBDOMAIN_MAX_LENGTH {
        errors.push(max_length_error(DNS1123_SUBDOMAIN_MAX_LENGTH));
    }
    if !value.strip_prefix("*.").is_some_and(matches_subdomain) {
        errors.push(regex_error(WILDCARD_MESSAGE, WILDCARD_PATTERN, &["*.example.com"]));
    }
    errors
}

/// The usual rule for object names; with `prefix` a generated suffix follows, so a trailing dash is allowed.
pub fn name_is_dns_subdomain(name: &str, prefix: bool) -> Vec<String> {
    if prefix { is_dns1123_subdomain(&mask_trailing_dash(name)) } else { is_dns1123_subdomain(name) }
}

/// The rule for names that are DNS labels.
pub fn name_is_dns_label(name: &str, prefix: bool) -> Vec<String> {
    if prefix { is_dns1123_label(&mask_trailing_dash(name)) } else { is_dns1123_label(name) }
}

/// The rule for names that are RFC 1035 labels.
pub fn name_is_dns1035_label(name: &str, prefix: bool) -> Vec<String> {
    if prefix { is_dns1035_label(&mask_trailing_dash(name)) } else { is_dns1035_label(name) }
}

/// The rule for names that must only fit into a URL path, such as those of roles.
pub fn validate_path_segment_name(name: &str, prefix: bool) -> Vec<String> {
    if !prefix && (name == "." || name == "..") {
        return vec![format!("may not be '{name}'")];
    }
    ["/", "%"]
        .into_iter()
        .filter(|illegal| name.contains(illegal))
        .map(|illegal| format!("may not contain '{illegal}'"))
        .collect()
}

/// "must be no more than N characters", the message of most formats (although bytes are counted).
pub fn max_length_error(length: usize) -> String {
    format!("must be no more than {length} characters")
}

/// "must be no more than N bytes", the message of label keys and values.
pub fn max_bytes_error(length: usize) -> String {
    format!("must be no more than {length} bytes")
}

/// "must be between LOW and HIGH, inclusive".
pub fn inclusive_range_error(low: i64, high: i64) -> String {
    format!("must be between {low} and {high}, inclusive")
}

/// "must be non-empty".
pub fn empty_error() -> String {
    "must be non-empty".to_owned()
}

/// The message for a text that does not match a pattern, with examples.
pub fn regex_error(message: &str, pattern: &str, examples: &[&str]) -> String {
    if examples.is_empty() {
        return format!("{message} (regex used for validation is '{pattern}')");
    }
    let examples: Vec<String> = examples.iter().map(|example| format!("'{example}'")).collect();
    format!("{message} (e.g. {}, regex used for validation is '{pattern}')", examples.join(",  or "))
}

/// Masks the trailing dash of a prefix, which is allowed because more follows. The dash and the character before it
/// become one letter, so that a prefix of only dashes stays invalid; this is the API's own rule.
fn mask_trailing_dash(name: &str) -> Cow<'_, str> {
    if name.len() < 2 {
        return name.into();
    }
    let Some(rest) = name.strip_suffix('-') else { return name.into() };
    let mut masked: String = rest.to_owned();
    masked.pop();
    masked.push('a');
    masked.into()
}

fn is_lower_alphanumeric(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

pub(super) fn starts_and_ends(bytes: &[u8], allowed: impl Fn(u8) -> bool) -> bool {
    bytes.first().is_some_and(|byte| allowed(*byte)) && bytes.last().is_some_and(|byte| allowed(*byte))
}

fn matches_label(value: &str) -> bool {
    let bytes = value.as_bytes();
    starts_and_ends(bytes, is_lower_alphanumeric)
        && bytes.iter().all(|byte| is_lower_alphanumeric(*byte) || *byte == b'-')
}

fn matches_subdomain(value: &str) -> bool {
    value.split('.').all(matches_label)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Check = fn(&str) -> Vec<String>;

    #[test]
    fn the_masked_prefix_loses_the_character_before_its_dash() {
        let rows =
            [("gen-", "gea"), ("a-", "a"), ("-", "-"), ("--", "a"), ("a.-", "aa"), ("é-", "a"), ("x", "x")];
        for (name, masked) in rows {
            assert_eq!(mask_trailing_dash(name), masked, "{name}");
        }
        assert!(name_is_dns_label("gen-", true).is_empty());
        assert_eq!(name_is_dns_label("gen-", false).len(), 1);
    }

    #[test]
    fn names_are_right_or_say_why_not() {
        let long = "a".repeat(254);
        let rows: &[(Check, &str, &[&str])] = &[
            (is_dns1123_label, "a-1", &[]),
            (is_dns1123_label, "a.b", &["must not contain dots"]),
            (is_dns1123_subdomain, "a.b-c.1", &[]),
            (is_dns1123_subdomain, &long, &["must be no more than 253 characters"]),
            (is_dns1123_subdomain_with_underscore, "_a.b_c", &[]),
            (is_dns1035_label, "a-1", &[]),
            (
                is_dns1035_label,
                "1a",
                &[
                    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an \
                   alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex \
                   used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')",
                ],
            ),
            (is_wildcard_dns1123_subdomain, "*.a.b", &[]),
            (|name| validate_path_segment_name(name, false), "..", &["may not be '..'"]),
            (
                |name| validate_path_segment_name(name, true),
                "a/%",
                &["may not contain '/'", "may not contain '%'"],
            ),
        ];
        for (check, value, messages) in rows {
            assert_eq!(check(value), *messages, "{value}");
        }
        for value in ["", "-a", "a-", "A", "a_b", "a..b", ".a", "a b"] {
            assert_eq!(is_dns1123_subdomain(value).len(), 1, "{value}");
        }
        for value in ["*", "*.", "a.*", "*.*.a", "*a.b"] {
            assert_eq!(is_wildcard_dns1123_subdomain(value).len(), 1, "{value}");
        }
    }
}
