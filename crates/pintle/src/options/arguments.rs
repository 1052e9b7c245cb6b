//! Helpers for the definition and parsing of flags.

use clap::{Arg, ArgAction, ArgMatches};
use pintle_go_forms::{parse_bool, parse_duration, quote};
use std::{net::IpAddr, time::Duration};

/// A flag with a value.
pub(crate) fn flag(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value).help(help)
}

/// A flag with a comma-separated list of values; it may be repeated.
pub(crate) fn list(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    flag(name, value, help).action(ArgAction::Append).value_delimiter(',')
}

/// A boolean flag; without a value it is true.
pub(crate) fn switch(name: &'static str, help: &'static str) -> Arg {
    flag(name, "BOOL", help)
        .num_args(0..=1)
        .require_equals(true)
        .default_missing_value("true")
        .value_parser(boolean)
}

/// Sets an option from its flag, if the flag was given.
pub(crate) fn set<T: Clone + Send + Sync + 'static>(matches: &ArgMatches, name: &str, option: &mut T) {
    if let Some(value) = matches.get_one::<T>(name) {
        *option = value.clone();
    }
}

/// Sets a list option from its flag, if the flag was given.
pub(crate) fn set_list(matches: &ArgMatches, name: &str, option: &mut Vec<String>) {
    if let Some(values) = matches.get_many::<String>(name) {
        *option = values.filter(|value| !value.is_empty()).cloned().collect();
    }
}

/// Parses a boolean as Go does.
pub(crate) fn boolean(text: &str) -> Result<bool, String> {
    parse_bool(text).ok_or_else(|| format!("strconv.ParseBool: parsing {}: invalid syntax", quote(text)))
}

/// A value that is refused after the syntax of all flags was read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OutOfRange {
    /// A negative value; the message follows from the flag.
    #[error("can not be negative value")]
    Negative,
    /// The whole message.
    #[error("{0}")]
    Message(String),
}

/// The error of a flag's value: an [`OutOfRange`], or a text of Go.
pub(crate) type ValueError = Box<dyn std::error::Error + Send + Sync>;

/// Parses a duration in Go's format.
pub(crate) fn duration(text: &str) -> Result<Duration, ValueError> {
    let nanoseconds = parse_duration(text)?;
    Ok(u64::try_from(nanoseconds).map(Duration::from_nanos).map_err(|_| OutOfRange::Negative)?)
}

/// Parses an integer as Go does; it may be hexadecimal, octal or binary.
pub(crate) fn integer<T: TryFrom<i64>>(text: &str) -> Result<T, ValueError> {
    let error = |why: &str| format!("strconv.ParseInt: parsing {}: {why}", quote(text));
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let lower = digits.to_ascii_lowercase();
    let prefixes = [("0x", 16), ("0b", 2), ("0o", 8), ("0", 8)];
    let based = prefixes.iter().find_map(|(prefix, radix)| Some((lower.strip_prefix(prefix)?, *radix)));
    let (digits, radix) = based.filter(|(digits, _)| !digits.is_empty()).unwrap_or((&lower, 10));
    if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(radix)) {
        return Err(error("invalid syntax").into());
    }
    let value =
        i64::from_str_radix(&format!("{sign}{digits}"), radix).map_err(|_| error("value out of range"))?;
    T::try_from(value).map_err(|_| match value < 0 {
        true => OutOfRange::Negative.into(),
        false => error("value out of range").into(),
    })
}

/// Parses a number with a fraction.
pub(crate) fn float<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("strconv.ParseFloat: parsing {}: invalid syntax", quote(text)))
}

/// Parses an IP address.
pub(crate) fn ip(text: &str) -> Result<IpAddr, String> {
    text.trim().parse().map_err(|_| format!("failed to parse IP: {}", quote(text)))
}

/// Parses the port to listen on.
pub(crate) fn port(text: &str) -> Result<u16, ValueError> {
    let port = integer::<i64>(text)?;
    Ok(u16::try_from(port).map_err(|_| {
        OutOfRange::Message(format!(
            "--secure-port {port} must be between 1 and 65535, inclusive. It cannot be turned off with 0"
        ))
    })?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_those_of_go() {
        let check = |text: &str, expected: Result<i64, &str>| {
            let found = integer::<i64>(text).map_err(|error| error.to_string());
            assert_eq!(found, expected.map_err(|why| format!("strconv.ParseInt: parsing {text:?}: {why}")));
        };
        check("-12", Ok(-12));
        check("+0x1F", Ok(31));
        check("017", Ok(15));
        check("0o17", Ok(15));
        check("0b11", Ok(3));
        check("0", Ok(0));
        check("-9223372036854775808", Ok(i64::MIN));
        check("9223372036854775808", Err("value out of range"));
        for text in ["", "x", "0x", "1 ", "--1", "+-1", "089", "1.5"] {
            check(text, Err("invalid syntax"));
        }
        assert_eq!(
            integer::<u16>("65536").unwrap_err().to_string(),
            "strconv.ParseInt: parsing \"65536\": value out of range"
        );
        assert!(integer::<u16>("-1").unwrap_err().is::<OutOfRange>());
        assert!(port("70000").unwrap_err().is::<OutOfRange>() && port("443").is_ok());
    }
}
