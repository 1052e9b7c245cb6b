//! Parts of timestamps, in UTC or another zone, and of durations.

use super::{Function, no_such_overload};
use crate::EvaluationError;
use crate::value::{Timestamp, Value};
use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone};
use pintle_machinery::text::quote;

pub(super) fn lookup(name: &str) -> Option<Function> {
    Some(match name {
        "getFullYear" => |args| part("getFullYear", args, |time| i64::from(time.year())),
        "getMonth" => |args| part("getMonth", args, |time| i64::from(time.month()) - 1),
        "getDayOfYear" => |args| part("getDayOfYear", args, |time| i64::from(time.day_of_year()) - 1),
        "getDayOfMonth" => |args| part("getDayOfMonth", args, |time| i64::from(time.day()) - 1),
        "getDate" => |args| part("getDate", args, |time| i64::from(time.day())),
        "getDayOfWeek" => {
            |args| part("getDayOfWeek", args, |time| i64::from(time.weekday().to_sunday_zero_offset()))
        }
        "getHours" => |args| match args {
            [Value::Duration(nanos)] => Ok(Value::Int(*nanos / 3_600_000_000_000)),
            args => part("getHours", args, |time| i64::from(time.hour())),
        },
        "getMinutes" => |args| match args {
            [Value::Duration(nanos)] => Ok(Value::Int(*nanos / 60_000_000_000)),
            args => part("getMinutes", args, |time| i64::from(time.minute())),
        },
        "getSeconds" => |args| match args {
            [Value::Duration(nanos)] => Ok(Value::Int(*nanos / 1_000_000_000)),
            args => part("getSeconds", args, |time| i64::from(time.second())),
        },
        "getMilliseconds" => |args| match args {
            [Value::Duration(nanos)] => Ok(Value::Int(*nanos / 1_000_000)),
            args => part("getMilliseconds", args, |time| i64::from(time.subsec_nanosecond()) / 1_000_000),
        },
        _ => return None,
    })
}

fn part<'a>(
    name: &str,
    args: &mut [Value<'a>],
    part: fn(DateTime) -> i64,
) -> Result<Value<'a>, EvaluationError> {
    let time = match args {
        [Value::Timestamp(time)] => local(*time, &TimeZone::UTC)?,
        [Value::Timestamp(time), Value::String(zone)] => local(*time, &zone_of(zone)?)?,
        args => return Err(no_such_overload(name, args)),
    };
    Ok(Value::Int(part(time)))
}

fn local(time: Timestamp, zone: &TimeZone) -> Result<DateTime, EvaluationError> {
    let nanos = i32::try_from(time.nanos).unwrap_or(0);
    match jiff::Timestamp::new(time.seconds, nanos) {
        Ok(time) => Ok(zone.to_datetime(time)),
        Err(_) => Err(EvaluationError::TIMESTAMP_OVERFLOW),
    }
}

/// A zone by its name in the IANA database or by its distance from UTC (`-08:00`).
fn zone_of(text: &str) -> Result<TimeZone, EvaluationError> {
    let Some((hours, minutes)) = text.split_once(':') else {
        return named_zone(text);
    };
    let minutes = parse_int(minutes)?;
    let hours = parse_int(hours)?;
    let minutes = if text.starts_with('-') { -minutes } else { minutes };
    let seconds = hours.checked_mul(60).and_then(|hours| hours.checked_add(minutes)?.checked_mul(60));
    let offset = seconds.and_then(|seconds| Offset::from_seconds(i32::try_from(seconds).ok()?).ok());
    // What is more than a day from UTC is nowhere.
    offset.map(TimeZone::fixed).ok_or(EvaluationError::TIMESTAMP_OVERFLOW)
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
        // Names are found in any case, but only one is right.
        Ok(zone) if zone.iana_name() == Some(name) => Ok(zone),
        _ => Err(EvaluationError::failed(format!("unknown time zone {name}"))),
    }
}

fn parse_int(text: &str) -> Result<i64, EvaluationError> {
    text.parse().map_err(|_| {
        EvaluationError::failed(format!("strconv.Atoi: parsing {}: invalid syntax", quote(text)))
    })
}
