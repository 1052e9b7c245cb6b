//! Converts values of a query string as Go does.

use crate::Status;
use pintle_go_forms::quote;
use std::{num::IntErrorKind, str::FromStr};

/// The decoded pairs of a query string, in their order.
#[derive(Debug, Clone, Default)]
pub struct QueryValues<'a>(Vec<(&'a str, &'a str)>);

impl<'a> QueryValues<'a> {
    /// From the decoded pairs.
    pub fn new(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> QueryValues<'a> {
        QueryValues(pairs.into_iter().collect())
    }

    /// The first value of a parameter.
    pub fn first(&self, name: &str) -> Option<&'a str> {
        self.0.iter().find(|(own, _)| *own == name).map(|(_, value)| *value)
    }

    /// The first value of a parameter, "" when there is none.
    pub fn text(&self, name: &str) -> &'a str {
        self.first(name).unwrap_or_default()
    }

    /// All values of a parameter.
    pub fn all(&self, name: &str) -> Vec<String> {
        self.0.iter().filter(|(own, _)| *own == name).map(|(_, value)| (*value).to_owned()).collect()
    }

    /// A boolean: anything but `0` and `false` is true.
    pub fn boolean(&self, name: &str) -> Option<bool> {
        self.first(name).map(|value| value != "0" && !value.eq_ignore_ascii_case("false"))
    }

    /// An integer.
    ///
    /// # Errors
    /// 400 when the value is not an integer.
    pub fn integer(&self, name: &str) -> Result<Option<i64>, Status> {
        self.first(name).map(|value| parse_integer(value).map_err(Status::bad_request)).transpose()
    }
}

/// Parses an integer, with Go's error messages.
fn parse_integer(text: &str) -> Result<i64, String> {
    text.parse::<i64>().map_err(|error| {
        let cause = match error.kind() {
            IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
            _ => "invalid syntax",
        };
        format!("strconv.ParseInt: parsing {}: {cause}", quote(text))
    })
}

/// Parses an unsigned integer, with Go's error messages.
pub(super) fn parse_unsigned<T: FromStr>(text: &str) -> Result<T, String> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let cause = if is_number { "value out of range" } else { "invalid syntax" };
    text.parse()
        .ok()
        .filter(|_| is_number)
        .ok_or_else(|| format!("strconv.ParseUint: parsing {}: {cause}", quote(text)))
}
