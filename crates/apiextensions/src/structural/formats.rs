//! The string formats that custom resources support; others are ignored
//! (<https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#validation>).
//!
//! A format accepts the same texts as in the reference, which uses Go's parsers and some regular expressions, not the
//! standards that the formats are named after.

mod email;

use std::sync::LazyLock;

use pintle_go_forms::{Cidr, Url, parse_ip_sloppy};
use regex::Regex;

use super::node::{Flags, JsonType, Node};

/// A format of strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StringFormat {
    BsonObjectId,
    Byte,
    Cidr,
    CreditCard,
    Date,
    DateTime,
    Duration,
    Email,
    HexColor,
    Hostname,
    Ipv4,
    Ipv6,
    Isbn,
    Isbn10,
    Isbn13,
    LongName,
    Mac,
    Password,
    RgbColor,
    ShortName,
    Ssn,
    Uri,
    Uuid,
    Uuid3,
    Uuid4,
    Uuid5,
}

/// Whether a node's format applies to its type.
pub(super) fn is_supported(node: &Node, format: &str) -> bool {
    let ty = if node.flags.has(Flags::INT_OR_STRING) { None } else { node.ty };
    match ty {
        None | Some(JsonType::String) => StringFormat::parse(format).is_some(),
        Some(JsonType::Integer) => matches!(format, "int32" | "int64"),
        Some(JsonType::Number) => matches!(format, "float" | "double"),
        Some(JsonType::Array | JsonType::Boolean | JsonType::Object | JsonType::Unknown(_)) => false,
    }
}

impl StringFormat {
    /// Parses a name; dashes are ignored.
    pub(super) fn parse(name: &str) -> Option<StringFormat> {
        let name = name.replace('-', "");
        Some(match name.as_str() {
            "bsonobjectid" => StringFormat::BsonObjectId,
            "byte" => StringFormat::Byte,
            "cidr" => StringFormat::Cidr,
            "creditcard" => StringFormat::CreditCard,
            "date" => StringFormat::Date,
            "datetime" => StringFormat::DateTime,
            "duration" => StringFormat::Duration,
            "email" => StringFormat::Email,
            "hexcolor" => StringFormat::HexColor,
            "hostname" => StringFormat::Hostname,
            "ipv4" => StringFormat::Ipv4,
            "ipv6" => StringFormat::Ipv6,
            "isbn" => StringFormat::Isbn,
            "isbn10" => StringFormat::Isbn10,
            "isbn13" => StringFormat::Isbn13,
            "k8slongname" => StringFormat::LongName,
            "k8sshortname" => StringFormat::ShortName,
            "mac" => StringFormat::Mac,
            "password" => StringFormat::Password,
            "rgbcolor" => StringFormat::RgbColor,
            "ssn" => StringFormat::Ssn,
            "uri" => StringFormat::Uri,
            "uuid" => StringFormat::Uuid,
            "uuid3" => StringFormat::Uuid3,
            "uuid4" => StringFormat::Uuid4,
            "uuid5" => StringFormat::Uuid5,
            _ => return None,
        })
    }

    /// Whether a text matches the format.
    pub(super) fn accepts(self, text: &str) -> bool {
        match self {
            StringFormat::BsonObjectId => text.len() == 24 && text.bytes().all(|b| b.is_ascii_hexdigit()),
            StringFormat::Byte => is_base64(text),
            StringFormat::Cidr => Cidr::parse_sloppy(text).is_some(),
            StringFormat::CreditCard => is_credit_card(text),
            StringFormat::Date => is_date(text),
            StringFormat::DateTime => is_date_time(text),
            StringFormat::Duration => is_duration(text),
            StringFormat::Email => email::is_email(text),
            StringFormat::HexColor => is_hex_color(text),
            StringFormat::Hostname => is_hostname(text),
            StringFormat::Ipv4 => text.contains('.') && parse_ip_sloppy(text).is_some(),
            StringFormat::Ipv6 => is_ipv6(text),
            StringFormat::Isbn => is_isbn10(text) || is_isbn13(text),
            StringFormat::Isbn10 => is_isbn10(text),
            StringFormat::Isbn13 => is_isbn13(text),
            StringFormat::LongName => text.len() <= 253 && text.split('.').all(is_label),
            StringFormat::ShortName => text.len() <= 63 && is_label(text),
            StringFormat::Mac => is_mac(text),
            StringFormat::Password => true,
            StringFormat::RgbColor => matches(&RGB_COLOR, text),
            StringFormat::Ssn => text.len() == 11 && matches(&SSN, text),
            StringFormat::Uri => Url::parse_request_uri(text).is_ok(),
            StringFormat::Uuid => is_uuid(text, None),
            StringFormat::Uuid3 => is_uuid(text, Some('3')),
            StringFormat::Uuid4 => is_uuid(text, Some('4')),
            StringFormat::Uuid5 => is_uuid(text, Some('5')),
        }
    }
}

type Lazy = LazyLock<Option<Regex>>;

static CREDIT_CARD: Lazy = LazyLock::new(|| {
    Regex::new(concat!(
        "^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|",
        "3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11})$"
    ))
    .ok()
});
static RGB_COLOR: Lazy = LazyLock::new(|| {
    const PART: &str = r"(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])";
    const SPACE: &str = r"[\t\n\f\r ]*";
    Regex::new(&format!(r"^rgb\({SPACE}{PART}{SPACE},{SPACE}{PART}{SPACE},{SPACE}{PART}{SPACE}\)$")).ok()
});
static SSN: Lazy = LazyLock::new(|| Regex::new("^[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}$").ok());
static HOSTNAME: Lazy = LazyLock::new(|| {
    Regex::new(concat!(
        r"^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)|",
        r"([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9\-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}([a-zA-Z\p{L}]){2,63})$"
    ))
    .ok()
});
static TIME: Lazy = LazyLock::new(|| {
    Regex::new("^([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))$").ok()
});
static DURATION_PART: Lazy = LazyLock::new(|| Regex::new(r"([0-9]+)[\t\n\f\r ]*([A-Za-zµ]+)").ok());

fn matches(pattern: &Lazy, text: &str) -> bool {
    pattern.as_ref().is_some_and(|pattern| pattern.is_match(text))
}

/// Groups of four characters, the last of which may be padded; not empty.
fn is_base64(text: &str) -> bool {
    if text.is_empty() || !text.len().is_multiple_of(4) {
        return false;
    }
    let data = text.strip_suffix("==").or_else(|| text.strip_suffix('=')).unwrap_or(text);
    data.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'))
}

fn is_hex_color(text: &str) -> bool {
    let digits = text.strip_prefix('#').unwrap_or(text);
    matches!(digits.len(), 3 | 6) && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn is_credit_card(text: &str) -> bool {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let sum: u32 = digits
        .bytes()
        .rev()
        .enumerate()
        .map(|(place, digit)| match (place % 2, u32::from(digit - b'0')) {
            (0, digit) => digit,
            (_, digit) if digit > 4 => 2 * digit - 9,
            (_, digit) => 2 * digit,
        })
        .sum();
    matches(&CREDIT_CARD, &digits) && sum.is_multiple_of(10)
}

fn isbn_digits(text: &str) -> Vec<u8> {
    text.bytes().filter(|byte| !matches!(byte, b'\t' | b'\n' | b'\x0c' | b'\r' | b' ' | b'-')).collect()
}

fn is_isbn10(text: &str) -> bool {
    let digits = isbn_digits(text);
    let Some((last, first)) = digits.split_last() else { return false };
    if first.len() != 9 || !first.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let last = match last {
        b'X' => 10,
        digit if digit.is_ascii_digit() => u32::from(digit - b'0'),
        _ => return false,
    };
    let sum: u32 = (1u32..).zip(first).map(|(factor, digit)| factor * u32::from(digit - b'0')).sum();
    (sum + 10 * last).is_multiple_of(11)
}

fn is_isbn13(text: &str) -> bool {
    let digits = isbn_digits(text);
    if digits.len() != 13 || !digits.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let factors = [1u32, 3].into_iter().cycle();
    let sum: u32 = factors.zip(&digits).map(|(factor, digit)| factor * u32::from(digit - b'0')).sum();
    sum.is_multiple_of(10)
}

/// `2006-01-02`
fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    let number = |range: std::ops::Range<usize>| -> Option<u32> {
        let digits = bytes.get(range)?;
        digits.iter().all(u8::is_ascii_digit).then_some(())?;
        Some(digits.iter().fold(0, |number, digit| number * 10 + u32::from(digit - b'0')))
    };
    if bytes.len() != 10 || bytes.get(4) != Some(&b'-') || bytes.get(7) != Some(&b'-') {
        return false;
    }
    let (Some(year), Some(month), Some(day)) = (number(0..4), number(5..7), number(8..10)) else {
        return false;
    };
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => return false,
    };
    (1..=days).contains(&day)
}

/// A date and, after the first `t` and up to a second one, a time with a zone.
fn is_date_time(text: &str) -> bool {
    let text = text.to_lowercase();
    let mut parts = text.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else { return false };
    if !is_date(date) {
        return false;
    }
    let Some(found) = TIME.as_ref().and_then(|pattern| pattern.captures(time)) else { return false };
    let part = |index: usize| found.get(index).map_or("", |part| part.as_str());
    part(1) <= "23" && part(2) <= "59" && part(3) <= "59"
}

/// A duration in Go's form, or a text that contains a number and a unit: `3 weeks`.
fn is_duration(text: &str) -> bool {
    /// The last name of each unit may have a suffix: `seconds`.
    const UNITS: [(&[&str], &str); 8] = [
        (&["ns"], "nano"),
        (&["us", "µs"], "micro"),
        (&["ms"], "milli"),
        (&["s"], "sec"),
        (&["m"], "min"),
        (&["h", "hr"], "hour"),
        (&["d"], "day"),
        (&["w", "wk"], "week"),
    ];
    if pintle_go_forms::parse_duration(text).is_ok() {
        return true;
    }
    let Some(pattern) = DURATION_PART.as_ref() else { return false };
    let mut found = false;
    for part in pattern.captures_iter(text) {
        let group = |index: usize| part.get(index).map_or("", |group| group.as_str());
        if group(1).parse::<i64>().is_err() {
            return false;
        }
        let unit = group(2).to_lowercase();
        found |= UNITS.iter().any(|(names, last)| names.contains(&unit.as_str()) || unit.starts_with(last));
    }
    found
}

fn is_hostname(text: &str) -> bool {
    text.len() <= 255 && text.split('.').all(|label| label.len() <= 63) && matches(&HOSTNAME, text)
}

/// Go's parser accepts no zones here.
fn is_ipv6(text: &str) -> bool {
    text.parse::<std::net::Ipv6Addr>().is_ok()
}

/// Lower-case letters, digits and inner dashes.
fn is_label(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty() && !text.starts_with('-') && !text.ends_with('-') && text.bytes().all(is_inner)
}

/// 6, 8 or 20 bytes in hex: pairs separated by colons or dashes, groups of four by dots, or no separators.
fn is_mac(text: &str) -> bool {
    let bytes = text.as_bytes();
    let (separator, group) = match (bytes.get(2), bytes.get(4)) {
        (Some(separator @ (b':' | b'-')), _) => (Some(*separator), 2),
        (_, Some(b'.')) => (Some(b'.'), 4),
        _ => (None, bytes.len()),
    };
    let groups: Vec<&[u8]> = match separator {
        Some(separator) => bytes.split(|&byte| byte == separator).collect(),
        None => vec![bytes],
    };
    let digits: usize = groups.iter().map(|group| group.len()).sum();
    matches!(digits, 12 | 16 | 40)
        && groups.iter().all(|part| part.len() == group && part.iter().all(u8::is_ascii_hexdigit))
}

/// Thirty-two digits, with or without dashes at the four positions; of the given version, if any.
fn is_uuid(text: &str, version: Option<char>) -> bool {
    let mut digits = String::with_capacity(32);
    for c in text.chars() {
        match c {
            '-' if matches!(digits.len(), 8 | 12 | 16 | 20) && !digits.ends_with('-') => {
                // Recorded so that the next character must not be a dash.
                digits.push('-');
            }
            c if c.is_ascii_hexdigit() => {
                if digits.ends_with('-') {
                    digits.pop();
                }
                digits.push(c.to_ascii_lowercase());
            }
            _ => return false,
        }
    }
    if digits.len() != 32 || digits.ends_with('-') {
        return false;
    }
    let variant = digits.chars().nth(16);
    match version {
        None => true,
        Some('3') => digits.chars().nth(12) == Some('3'),
        version => digits.chars().nth(12) == version && matches!(variant, Some('8' | '9' | 'a' | 'b')),
    }
}

#[cfg(test)]
mod tests;
