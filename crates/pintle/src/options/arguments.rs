//! Helpers for the definition and parsing of flags.

use clap::{Arg, ArgAction, ArgMatches};
use pintle_go_forms::{parse_bool, parse_duration, quote};
use std::time::Duration;

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

/// Parses a duration in Go's format.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let nanoseconds = parse_duration(text)?;
    u64::try_from(nanoseconds).map(Duration::from_nanos).map_err(|_| "a duration is not negative".to_owned())
}
