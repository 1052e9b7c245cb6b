//! Components of timestamps, in UTC or another zone, and of durations.

use super::{Function, no_such_overload};
use crate::EvaluationError;
use crate::value::{Civil, Timestamp, Value};
use jiff::tz::TimeZone;
use pintle_go_forms::quote;

type Outcome<'a> = Result<Value<'a>, EvaluationError>;

pub(super) fn lookup(name: &str) -> Option<Function> {
    Some(match name {
        "getFullYear" => |args| part("getFullYear", args, |time| time.year),
        "getMonth" => |args| part("getMonth", args, |time| time.month - 1),
        "getDayOfYear" => |args| part("getDayOfYear", args, |time| time.day_of_year),
        "getDayOfMonth" => |args| part("getDayOfMonth", args, |time| time.day - 1),
        "getDate" => |args| part("getDate", args, |time| time.day),
        "getDayOfWeek" => |args| part("getDayOfWeek", args, Civil::day_of_week),
        "getHours" => |args| match args {
            [Value::Duration(nanos)] => Ok(Value::Int(*nanos / 3_600_000_000_000)),
            args => part("getHours", args, |time| time.second_of_day / 3600),
        },
        "getMinutes" => |args| match args {
            [Value::Duration(nanos)] => Ok(Value::Int(*nanos / 60_000_000_000)),
            args => part("getMinutes", args, |time| time.second_of_day / 60 % 60),
        },
        "getSeconds" => |args| match args {
            [Value::Duration(nanos)] => Ok(Value::Int(*nanos / 1_000_000_000)),
            args => part("getSeconds", args, |time| time.second_of_day % 60),
        },
        "getMilliseconds" => |args| match args {
            [Value::Duration(nanos)] => Ok(Value::Int(*nanos / 1_000_000)),
            [Value::Timestamp(time)] => Ok(Value::Int(i64::from(time.nanos) / 1_000_000)),
            // Zone offsets have no fractions of a second, but the zone must be valid.
            [Value::Timestamp(time), Value::String(zone)] => {
                seconds_ahead(*time, zone)?;
                Ok(Value::Int(i64::from(time.nanos) / 1_000_000))
            }
            args => Err(no_such_overload("getMilliseconds", args)),
        },
        _ => return None,
    })
}

fn part<'a>(name: &str, args: &mut [Value<'a>], part: fn(Civil) -> i64) -> Outcome<'a> {
    match args {
        [Value::Timestamp(time)] => Ok(Value::Int(part(time.civil(0)))),
        [Value::Timestamp(time), Value::String(zone)] => {
            Ok(Value::Int(part(time.civil(seconds_ahead(*time, zone)?))))
        }
        args => Err(no_such_overload(name, args)),
    }
}

/// The offset of a zone from UTC at a time, in seconds. The zone is a name in the IANA database, or the offset in hours
/// and minutes (`-08:00`).
fn seconds_ahead(time: Timestamp, zone: &str) -> Result<i64, EvaluationError> {
    let Some((hours, minutes)) = zone.split_once(':') else {
        let zone = named_zone(zone)?;
        // Zone rules are constant before the first time here, and cyclic before the last.
        let seconds = time.seconds.clamp(jiff::Timestamp::MIN.as_second(), jiff::Timestamp::MAX.as_second());
        let time = jiff::Timestamp::from_second(seconds).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
        return Ok(zone.to_offset(time).seconds().into());
    };
    let whole_hours = parse_int(hours)?;
    let minutes = parse_int(minutes)?;
    let minutes = if hours.starts_with('-') { minutes.wrapping_neg() } else { minutes };
    // Extreme offsets wrap around, like nanoseconds in the reference.
    let nanos = whole_hours.wrapping_mul(60).wrapping_add(minutes).wrapping_mul(60_000_000_000);
    Ok(nanos / 1_000_000_000)
}

fn named_zone(name: &str) -> Result<TimeZone, EvaluationError> {
    match name {
        "" | "UTC" | "Local" => return Ok(TimeZone::UTC),
        name if name.contains("..") || name.starts_with(['/', '\\']) => {
            return Err("time: invalid location name".into());
        }
        _ => {}
    }
    match TimeZone::get(name) {
        // Lookup is case-insensitive, but only the exact name is valid.
        Ok(zone) if zone.iana_name() == Some(name) => Ok(zone),
        _ => Err(EvaluationError::failed(format!("unknown time zone {name}"))),
    }
}

fn parse_int(text: &str) -> Result<i64, EvaluationError> {
    text.parse().map_err(|_| {
        EvaluationError::failed(format!("strconv.Atoi: parsing {}: invalid syntax", quote(text)))
    })
}
