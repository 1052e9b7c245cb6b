//! Helpers for the definition and parsing of flags.

use clap::{Arg, ArgAction, ArgMatches};
use pintle_go_forms::{
    CsvReader, parse_bool, parse_duration, parse_float, parse_float32, parse_integer, quote,
};
use std::{collections::BTreeMap, net::IpAddr, time::Duration};

/// A flag with a value.
pub(crate) fn flag(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value).help(help)
}

/// A flag with a list of values, which are the fields of a CSV line; it may be repeated. See [`texts`].
pub(crate) fn list(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    flag(name, value, help).action(ArgAction::Append).value_parser(fields)
}

/// The values of a list flag; `None` if the flag was not given.
pub(crate) fn texts(matches: &ArgMatches, name: &str) -> Option<Vec<String>> {
    let given = matches.get_many::<Vec<String>>(name)?;
    Some(given.flatten().cloned().collect())
}

/// The fields of the first line of a CSV text; the empty text has none.
pub(crate) fn fields(text: &str) -> Result<Vec<String>, ValueError> {
    match text {
        "" => Ok(Vec::new()),
        _ => Ok(CsvReader::new(text).record()?),
    }
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

/// Sets a duration from its flag, if the flag was given and is not zero, which stands for the default.
pub(crate) fn set_nonzero(matches: &ArgMatches, name: &str, option: &mut Duration) {
    if let Some(value) = matches.get_one::<Duration>(name).filter(|value| !value.is_zero()) {
        *option = *value;
    }
}

/// Sets a list option from its flag, if the flag was given.
pub(crate) fn set_list(matches: &ArgMatches, name: &str, option: &mut Vec<String>) {
    if let Some(values) = texts(matches, name) {
        *option = values;
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

/// The messages of values that were refused after the syntax of all flags was read, by the names of the flags.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Refused(BTreeMap<String, String>);

impl Refused {
    /// Adds a message; the first one of a flag stays.
    pub fn add(&mut self, flag: &str, message: String) {
        self.0.entry(flag.to_owned()).or_insert(message);
    }

    /// Whether a value of the flag was refused.
    pub fn contains(&self, flag: &str) -> bool {
        self.0.contains_key(flag)
    }

    /// Takes the messages of flags, in this order.
    pub(crate) fn take(&mut self, flags: &[&str]) -> Vec<String> {
        flags.iter().filter_map(|flag| self.0.remove(*flag)).collect()
    }

    /// The messages of the flags that were not taken.
    pub(crate) fn rest(self) -> impl Iterator<Item = String> {
        self.0.into_values()
    }
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
    let value = parse_integer(text)?;
    T::try_from(value).map_err(|_| match value < 0 {
        true => OutOfRange::Negative.into(),
        false => format!("strconv.ParseInt: parsing {}: value out of range", quote(text)).into(),
    })
}

/// Parses a number with a fraction.
pub(crate) fn float(text: &str) -> Result<f64, String> {
    parse_float(text)
}

/// Parses a number of 32 bits with a fraction.
pub(crate) fn float32(text: &str) -> Result<f32, String> {
    parse_float32(text)
}

/// Parses an IP address.
pub(crate) fn ip(text: &str) -> Result<IpAddr, String> {
    let address: IpAddr = text.trim().parse().map_err(|_| format!("failed to parse IP: {}", quote(text)))?;
    // An IPv4 address in the form of IPv6 is an IPv4 address to Go.
    Ok(address.to_canonical())
}

/// Checks a range of ports: `FROM-TO`, `FROM+OFFSET` or a single port.
pub(crate) fn port_range(text: &str) -> Result<String, String> {
    let number = |text: &str| -> Result<i64, String> {
        let failed = |why: &str| format!("strconv.Atoi: parsing {}: {why}", quote(text));
        let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
        match digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            true => Err(failed("invalid syntax")),
            false => text.parse().map_err(|_| failed("value out of range")),
        }
    };
    let range = text.trim();
    let (low, high) = match range.split_once('-') {
        Some((low, high)) => (number(low)?, number(high)?),
        None => match range.split_once('+') {
            Some((low, offset)) => {
                let low = number(low)?;
                (low, low.saturating_add(number(offset)?))
            }
            None => (number(range)?, number(range)?),
        },
    };
    if low > 65535 || high > 65535 {
        return Err(format!("the port range cannot be greater than 65535: {text}"));
    }
    match high < low {
        true => Err(format!("end port cannot be less than start port: {text}")),
        false => Ok(text.to_owned()),
    }
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
    use clap::Command;

    #[test]
    fn integers_have_the_range_of_their_option() {
        assert_eq!(integer::<u16>("0x1F").unwrap(), 31);
        assert_eq!(
            integer::<u16>("65536").unwrap_err().to_string(),
            "strconv.ParseInt: parsing \"65536\": value out of range"
        );
        assert!(integer::<u16>("-1").unwrap_err().is::<OutOfRange>());
        assert!(port("70000").unwrap_err().is::<OutOfRange>() && port("443").is_ok());
    }

    #[test]
    fn ranges_of_ports_are_those_of_kubernetes() {
        assert!(["1-2", "30000+100", "80", " 1-2 "].iter().all(|text| port_range(text).is_ok()));
        let check = |text: &str, expected: &str| assert_eq!(port_range(text).unwrap_err(), expected);
        check("abc", "strconv.Atoi: parsing \"abc\": invalid syntax");
        check("-5", "strconv.Atoi: parsing \"\": invalid syntax");
        check("1-2-3", "strconv.Atoi: parsing \"2-3\": invalid syntax");
        check("1-70000", "the port range cannot be greater than 65535: 1-70000");
        check("2-1", "end port cannot be less than start port: 2-1");
    }

    #[test]
    fn zero_stands_for_the_default_of_some_durations() {
        let command = Command::new("pintle").arg(flag("timeout", "D", "t").value_parser(duration));
        let read = |argument: &str| {
            let mut timeout = Duration::from_secs(2);
            set_nonzero(&command.clone().get_matches_from(["pintle", argument]), "timeout", &mut timeout);
            timeout
        };
        assert_eq!(read("--timeout=0s"), Duration::from_secs(2));
        assert_eq!(read("--timeout=7s"), Duration::from_secs(7));
    }

    #[test]
    fn lists_are_fields_of_csv_lines() {
        let command = || Command::new("pintle").arg(list("names", "NAME,…", "names"));
        let read = |arguments: &[&str]| {
            texts(&command().get_matches_from([&["pintle"], arguments].concat()), "names")
        };
        assert_eq!(read(&[]), None);
        assert_eq!(read(&["--names="]), Some(Vec::new()), "an empty list is not an absent one");
        assert_eq!(read(&["--names=a,\"b,c\"", "--names=,d"]).unwrap(), ["a", "b,c", "", "d"]);
        let error = command().try_get_matches_from(["pintle", "--names=a\"b"]).unwrap_err().to_string();
        assert!(error.contains("parse error on line 1, column 2: bare \" in non-quoted-field"), "{error}");
    }
}
