//! Resolves scalars by YAML 1.1, as Go's library does.

use crate::codec::parse_time;

/// The type and value of a plain scalar.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Resolved {
    Text,
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Float(f64),
    /// Read as text, but quoted when written.
    Timestamp,
    /// `<<`, the key that merges another mapping.
    Merge,
}

pub(super) fn resolve(text: &str) -> Resolved {
    let Some(first) = text.bytes().next() else { return Resolved::Null };
    match first {
        b'~' | b'n' | b'N' | b'y' | b'Y' | b't' | b'T' | b'f' | b'F' | b'o' | b'O' | b'<' => word(text),
        b'.' => match text {
            ".nan" | ".NaN" | ".NAN" => Resolved::Float(f64::NAN),
            ".inf" | ".Inf" | ".INF" => Resolved::Float(f64::INFINITY),
            _ => float(text).map_or(Resolved::Text, Resolved::Float),
        },
        b'+' | b'-' | b'0'..=b'9' => number(text),
        _ => Resolved::Text,
    }
}

fn word(text: &str) -> Resolved {
    match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            Resolved::Bool(true)
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            Resolved::Bool(false)
        }
        "~" | "null" | "Null" | "NULL" => Resolved::Null,
        "<<" => Resolved::Merge,
        _ => Resolved::Text,
    }
}

fn number(text: &str) -> Resolved {
    match text {
        "+.inf" | "+.Inf" | "+.INF" => return Resolved::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => return Resolved::Float(f64::NEG_INFINITY),
        _ => {}
    }
    if is_timestamp(text) {
        return Resolved::Timestamp;
    }
    let plain: String = text.chars().filter(|&c| c != '_').collect();
    if let Some(integer) = integer(&plain) {
        return integer;
    }
    if is_float(&plain)
        && let Some(value) = float(&plain)
    {
        return Resolved::Float(value);
    }
    Resolved::Text
}

fn integer(text: &str) -> Option<Resolved> {
    let negative = text.starts_with('-');
    let signed = text.starts_with(['-', '+']);
    let digits = if signed { text.get(1..)? } else { text };
    let (radix, digits) = match digits.get(..2).map(str::to_ascii_lowercase).as_deref() {
        Some("0x") => (16, digits.get(2..)?),
        Some("0o") => (8, digits.get(2..)?),
        Some("0b") => (2, digits.get(2..)?),
        _ => match digits.strip_prefix('0') {
            Some(rest) if !rest.is_empty() => (8, rest),
            _ => (10, digits),
        },
    };
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return None;
    }
    let size = u64::from_str_radix(digits, radix).ok()?;
    if negative {
        return 0i64.checked_sub_unsigned(size).map(Resolved::Int);
    }
    match i64::try_from(size) {
        Ok(value) => Some(Resolved::Int(value)),
        Err(_) => (!signed).then_some(Resolved::Uint(size)),
    }
}

/// An optional sign, digits with at most one point, an optional exponent.
fn is_float(text: &str) -> bool {
    let rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = match rest.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (rest, None),
    };
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let mantissa = match mantissa.split_once('.') {
        Some(("", fraction)) => !fraction.is_empty() && digits(fraction),
        Some((whole, fraction)) => digits(whole) && digits(fraction),
        None => !mantissa.is_empty() && digits(mantissa),
    };
    let exponent = exponent.is_none_or(|exponent| {
        let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        !exponent.is_empty() && digits(exponent)
    });
    mantissa && exponent
}

/// A double within range.
fn float(text: &str) -> Option<f64> {
    if !text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-')) {
        return None;
    }
    text.parse().ok().filter(|value: &f64| value.is_finite())
}

/// A date, or a date and a time, with one or two digits for all but the year.
fn is_timestamp(text: &str) -> bool {
    let bytes = text.as_bytes();
    if !(bytes.iter().take_while(|byte| byte.is_ascii_digit()).count() == 4 && bytes.get(4) == Some(&b'-')) {
        return false;
    }
    let (date, time) = match text.split_once(['T', 't', ' ']) {
        Some((date, time)) => (date, Some(time)),
        None => (text, None),
    };
    let mut parts = date.split('-');
    let (Some(year), Some(month), Some(day), None) = (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    let (Some(month), Some(day)) = (two_digits(month), two_digits(day)) else { return false };
    let clock = match time {
        None => "00:00:00Z".to_owned(),
        Some(time) => {
            let mut parts = time.splitn(3, ':');
            let (Some(hour), Some(minute), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
                return false;
            };
            let (Some(hour), Some(minute)) = (two_digits(hour), two_digits(minute)) else { return false };
            let len = rest.bytes().take_while(u8::is_ascii_digit).count();
            let (second, rest) = rest.split_at_checked(len).unwrap_or((rest, ""));
            let Some(second) = two_digits(second) else { return false };
            // With a space between date and time a zone must be absent, otherwise it must be present.
            let zone = if text.contains(' ') { "Z" } else { "" };
            format!("{hour}:{minute}:{second}{rest}{zone}")
        }
    };
    parse_time(&format!("{year}-{month}-{day}T{clock}")).is_ok()
}

fn two_digits(text: &str) -> Option<String> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    (digits && (1..=2).contains(&text.len())).then(|| format!("{text:0>2}"))
}
