//! Small pieces that files of flags are made of.

use clap::{Arg, ArgAction, ArgMatches};
use pintle_machinery::codec::parse_duration;
use std::time::Duration;

/// A flag with a value.
pub(crate) fn flag(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value).help(help)
}

/// A flag with a list of values, which may come several times.
pub(crate) fn list(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    flag(name, value, help).action(ArgAction::Append).value_delimiter(',')
}

/// A flag that is on or off, and on when it has no value.
pub(crate) fn switch(name: &'static str, help: &'static str) -> Arg {
    flag(name, "BOOL", help)
        .num_args(0..=1)
        .require_equals(true)
        .default_missing_value("true")
        .value_parser(boolean)
}

/// Takes the value of a flag over, if it was given.
pub(crate) fn set<T: Clone + Send + Sync + 'static>(matches: &ArgMatches, name: &str, option: &mut T) {
    if let Some(value) = matches.get_one::<T>(name) {
        *option = value.clone();
    }
}

/// Takes the values of a list over, if it was given.
pub(crate) fn set_list(matches: &ArgMatches, name: &str, option: &mut Vec<String>) {
    if let Some(values) = matches.get_many::<String>(name) {
        *option = values.filter(|value| !value.is_empty()).cloned().collect();
    }
}

/// A boolean as Go reads it.
fn boolean(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err(format!("strconv.ParseBool: parsing \"{text}\": invalid syntax")),
    }
}

/// A duration as Go writes it.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let nanoseconds = parse_duration(text)?;
    u64::try_from(nanoseconds).map(Duration::from_nanos).map_err(|_| "a duration is not negative".to_owned())
}
