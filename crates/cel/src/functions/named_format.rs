//! Named formats for the validation of strings.

use crate::value::Timestamp;
use pintle_go_forms::Url;
use pintle_machinery::validation::{
    is_qualified_name, is_valid_label_value, name_is_dns_label, name_is_dns_subdomain, name_is_dns1035_label,
};
use regex::Regex;
use std::fmt;
use std::sync::LazyLock;

/// A format of the library `format`:
/// <https://kubernetes.io/docs/reference/using-api/cel/#kubernetes-format-library>.
pub struct NamedFormat {
    /// The name for lookup.
    key: &'static str,
    name: &'static str,
    /// Returns the error messages for a text.
    validate: fn(&str) -> Vec<String>,
    /// The length of the pattern, for cost estimates.
    pattern_length: u64,
}

impl NamedFormat {
    /// Finds a format by name.
    pub(super) fn find(key: &str) -> Option<&'static NamedFormat> {
        FORMATS.iter().find(|format| format.key == key)
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    pub(super) fn validate(&self, text: &str) -> Vec<String> {
        (self.validate)(text)
    }

    pub(crate) fn pattern_length(&self) -> u64 {
        self.pattern_length
    }
}

impl fmt::Debug for NamedFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NamedFormat").field(&self.name).finish()
    }
}

const fn format(
    key: &'static str,
    name: &'static str,
    validate: fn(&str) -> Vec<String>,
    pattern_length: u64,
) -> NamedFormat {
    NamedFormat { key, name, validate, pattern_length }
}

static FORMATS: [NamedFormat; 13] = [
    format("dns1123Label", "DNS1123Label", |text| name_is_dns_label(text, false), 30),
    format("dns1123Subdomain", "DNS1123Subdomain", |text| name_is_dns_subdomain(text, false), 60),
    format("dns1035Label", "DNS1035Label", |text| name_is_dns1035_label(text, false), 30),
    format("qualifiedName", "QualifiedName", is_qualified_name, 60),
    format("dns1123LabelPrefix", "DNS1123LabelPrefix", |text| name_is_dns_label(text, true), 30),
    format("dns1123SubdomainPrefix", "DNS1123SubdomainPrefix", |text| name_is_dns_subdomain(text, true), 60),
    format("dns1035LabelPrefix", "DNS1035LabelPrefix", |text| name_is_dns1035_label(text, true), 30),
    format("labelValue", "LabelValue", is_valid_label_value, 40),
    format("uri", "URI", |text| Url::parse_request_uri(text).err().into_iter().collect(), 1103),
    format("uuid", "uuid", |text| unless(is_uuid(text), "does not match the UUID format"), 70),
    format("byte", "byte", |text| unless(is_base64(text), "invalid base64"), 84),
    format("date", "date", |text| unless(is_date(text), "invalid date"), 71),
    format("datetime", "datetime", |text| unless(is_date_time(text), "invalid datetime"), 71),
];

fn unless(valid: bool, problem: &str) -> Vec<String> {
    if valid { Vec::new() } else { vec![problem.to_owned()] }
}

fn is_uuid(text: &str) -> bool {
    static PATTERN: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new("^[0-9A-Fa-f]{8}-?[0-9A-Fa-f]{4}-?[0-9A-Fa-f]{4}-?[0-9A-Fa-f]{4}-?[0-9A-Fa-f]{12}$").ok()
    });
    PATTERN.as_ref().is_some_and(|pattern| pattern.is_match(text))
}

/// Whether the text is padded base64 and not empty.
fn is_base64(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    let padding = text.len() - digits.len();
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/';
    !digits.is_empty() && padding <= 2 && text.len().is_multiple_of(4) && digits.bytes().all(is_digit)
}

fn is_date(text: &str) -> bool {
    Timestamp::parse_date(text).is_ok()
}

/// RFC 3339, case-insensitive; hours up to 23, minutes and seconds up to 59, any character as decimal point.
fn is_date_time(text: &str) -> bool {
    static PATTERN: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new("^([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))$").ok()
    });
    let lower = text.to_lowercase();
    let mut parts = lower.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else { return false };
    let in_range = |time: &str| {
        let part = |range| time.get(range).unwrap_or("99");
        part(0..2) <= "23" && part(3..5) <= "59" && part(6..8) <= "59"
    };
    is_date(date) && PATTERN.as_ref().is_some_and(|pattern| pattern.is_match(time)) && in_range(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_accept_and_refuse() {
        let rows = [
            ("dns1123Label", "my-name", "My_Name"),
            ("dns1123LabelPrefix", "my-name-", "-my"),
            ("dns1123Subdomain", "a.b", "a..b"),
            ("dns1035Label", "a1", "1a"),
            ("qualifiedName", "example.com/name", "/name"),
            ("labelValue", "", "-"),
            ("uri", "https://example.com", "relative"),
            ("uuid", "123e4567-e89b-12d3-a456-426614174000", "123"),
            ("byte", "aGVsbG8=", "aGVsbG8"),
            ("date", "2020-02-29", "2021-02-29"),
            ("datetime", "2020-02-29T10:00:00.5z", "2020-02-29T24:00:00Z"),
        ];
        for (key, valid, invalid) in rows {
            let format = NamedFormat::find(key).unwrap();
            assert_eq!(format.validate(valid), Vec::<String>::new(), "{key}");
            assert!(!format.validate(invalid).is_empty(), "{key}");
        }
        assert!(NamedFormat::find("unknown").is_none());
    }
}
