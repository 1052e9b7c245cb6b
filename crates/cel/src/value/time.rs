//! Timestamps and durations in nanoseconds, within the years 1 to 9999.

use super::number::decimal;
use crate::EvaluationError;
use pintle_machinery::codec::parse_time;
use std::cmp::Ordering;

/// The first second of the year 1, in seconds since 1970.
const MIN_SECONDS: i64 = -62_135_596_800;
/// The last second of the year 9999, in seconds since 1970.
const MAX_SECONDS: i64 = 253_402_300_799;
const NANOS_PER_SECOND: i64 = 1_000_000_000;
const SECONDS_PER_DAY: i64 = 86_400;

/// A point in time. The printed form uses the original zone; comparison ignores it.
#[derive(Clone, Copy, Debug)]
pub struct Timestamp {
    /// Seconds since 1970 in UTC.
    pub seconds: i64,
    /// Nanoseconds after that second.
    pub nanos: u32,
    /// Seconds east of UTC.
    pub offset: i32,
}

impl Timestamp {
    /// A time in UTC.
    ///
    /// # Errors
    /// When the time is outside the years 1 to 9999.
    pub fn from_seconds(seconds: i64) -> Result<Timestamp, EvaluationError> {
        match (MIN_SECONDS..=MAX_SECONDS).contains(&seconds) {
            true => Ok(Timestamp { seconds, nanos: 0, offset: 0 }),
            false => Err(EvaluationError::TIMESTAMP_OVERFLOW),
        }
    }

    /// Parses RFC 3339; the zone is kept.
    ///
    /// # Errors
    /// The message, when the text is malformed.
    pub fn parse(text: &str) -> Result<Timestamp, String> {
        let time = parse_time(text)?;
        Ok(Timestamp { seconds: time.seconds, nanos: time.nanos, offset: written_offset(text) })
    }

    /// Parses a date; the time is midnight in UTC.
    ///
    /// # Errors
    /// The message, when the text is malformed.
    pub fn parse_date(text: &str) -> Result<Timestamp, String> {
        match parse_time(&format!("{text}T00:00:00Z")) {
            Ok(time) if text.len() == 10 => Ok(Timestamp { seconds: time.seconds, nanos: 0, offset: 0 }),
            _ => {
                let quoted = pintle_go_forms::quote(text);
                Err(format!(
                    "parsing time {quoted} as \"2006-01-02\": cannot parse {quoted} as \"2006-01-02\""
                ))
            }
        }
    }

    /// Whether this is Go's zero time, the first moment of the year 1.
    pub(crate) fn is_zero(self) -> bool {
        self.seconds == MIN_SECONDS && self.nanos == 0
    }

    /// Fails unless the time is within the years 1 to 9999.
    pub(crate) fn in_range(self) -> Result<Timestamp, EvaluationError> {
        Timestamp::from_seconds(self.seconds).map(|_| self)
    }

    /// Adds a number of nanoseconds.
    pub(crate) fn add(self, duration: i64) -> Result<Timestamp, EvaluationError> {
        let nanos = i64::from(self.nanos) + duration.rem_euclid(NANOS_PER_SECOND);
        let seconds =
            self.seconds + duration.div_euclid(NANOS_PER_SECOND) + nanos.div_euclid(NANOS_PER_SECOND);
        let nanos = u32::try_from(nanos.rem_euclid(NANOS_PER_SECOND)).unwrap_or(0);
        Timestamp { seconds, nanos, ..self }.in_range()
    }

    /// Subtracts a number of nanoseconds.
    pub(crate) fn subtract(self, duration: i64) -> Result<Timestamp, EvaluationError> {
        self.add(duration.checked_neg().ok_or(EvaluationError::INTEGER_OVERFLOW)?)
    }

    /// The nanoseconds from another time to this one.
    pub(crate) fn since(self, other: Timestamp) -> Result<i64, EvaluationError> {
        let nanos = i64::from(self.nanos) - i64::from(other.nanos);
        (self.seconds - other.seconds)
            .checked_mul(NANOS_PER_SECOND)
            .and_then(|total| total.checked_add(nanos))
            .ok_or(EvaluationError::INTEGER_OVERFLOW)
    }

    /// Compares two times.
    pub(crate) fn compare(self, other: Timestamp) -> Ordering {
        (self.seconds, self.nanos).cmp(&(other.seconds, other.nanos))
    }

    /// The calendar date and time of day at an offset in seconds from UTC.
    pub(crate) fn civil(self, ahead: i64) -> Civil {
        let local = self.seconds.saturating_add(ahead);
        let days = local.div_euclid(SECONDS_PER_DAY);
        let (year, month, day) = civil_from_days(days);
        let day_of_year = days - first_day(year);
        Civil { year, month, day, day_of_year, days, second_of_day: local.rem_euclid(SECONDS_PER_DAY) }
    }

    /// Formats the time as RFC 3339 in its own zone, with the needed number of fraction digits.
    pub(crate) fn format(self) -> String {
        let Civil { year, month, day, second_of_day: second, .. } = self.civil(self.offset.into());
        let (hours, minutes, seconds) = (second / 3600, second / 60 % 60, second % 60);
        let mut out = format!("{year:04}-{month:02}-{day:02}T{hours:02}:{minutes:02}:{seconds:02}");
        if self.nanos > 0 {
            out.push('.');
            out.push_str(format!("{:09}", self.nanos).trim_end_matches('0'));
        }
        match self.offset {
            0 => out.push('Z'),
            offset => {
                let sign = if offset < 0 { '-' } else { '+' };
                let minutes = offset.unsigned_abs() / 60;
                out.push_str(&format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60));
            }
        }
        out
    }
}

/// A calendar date and time of day.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Civil {
    pub(crate) year: i64,
    pub(crate) month: i64,
    pub(crate) day: i64,
    /// Days since the first of January.
    pub(crate) day_of_year: i64,
    /// Days since the first of January 1970, a Thursday.
    days: i64,
    pub(crate) second_of_day: i64,
}

impl Civil {
    /// Days since Sunday.
    pub(crate) fn day_of_week(self) -> i64 {
        (self.days + 4).rem_euclid(7)
    }
}

/// The zone offset in a well-formed time, in seconds.
fn written_offset(text: &str) -> i32 {
    let Some(zone) = text.len().checked_sub(6).and_then(|start| text.get(start..)) else { return 0 };
    let sign = match zone.as_bytes().first() {
        Some(b'+') => 1,
        Some(b'-') => -1,
        _ => return 0,
    };
    let part = |range| zone.get(range).and_then(|digits: &str| digits.parse::<i32>().ok()).unwrap_or(0);
    sign * (part(1..3) * 3600 + part(4..6) * 60)
}

/// The date of a number of days since 1970, computed in 400-year eras that start in March.
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

/// Days from 1970 to the first of January of a year.
fn first_day(year: i64) -> i64 {
    let before = year - 1;
    365 * (year - 1970) + (before.div_euclid(4) - before.div_euclid(100) + before.div_euclid(400)) - 477
}

/// Formats a duration in seconds, as `string()` does: `5400s`, `0.25s`.
pub(crate) fn format_duration(nanos: i64) -> String {
    let seconds = (nanos / NANOS_PER_SECOND) as f64 + (nanos % NANOS_PER_SECOND) as f64 / 1e9;
    format!("{}s", decimal(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_keep_their_zone_and_digits() {
        let rows = [
            ("1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z"),
            ("2020-02-29T23:59:59.250Z", "2020-02-29T23:59:59.25Z"),
            ("2020-01-01T00:30:00+01:30", "2020-01-01T00:30:00+01:30"),
            ("2020-01-01T00:30:00-00:30", "2020-01-01T00:30:00-00:30"),
            ("2020-01-01T00:30:00+00:00", "2020-01-01T00:30:00Z"),
            ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
            ("9999-12-31T23:59:59.999999999Z", "9999-12-31T23:59:59.999999999Z"),
        ];
        for (written, printed) in rows {
            assert_eq!(Timestamp::parse(written).map(Timestamp::format).as_deref(), Ok(printed));
        }
    }

    #[test]
    fn arithmetic_carries_and_is_bounded() {
        let time = Timestamp { seconds: 10, nanos: 5, offset: 0 };
        let later = time.add(-6).unwrap();
        assert_eq!((later.seconds, later.nanos), (9, 999_999_999));
        assert_eq!(time.since(later), Ok(6));
        let last = Timestamp::from_seconds(MAX_SECONDS).unwrap();
        assert!(last.add(999_999_999).is_ok());
        assert!(last.add(NANOS_PER_SECOND).is_err());
        let first = Timestamp::from_seconds(MIN_SECONDS).unwrap();
        assert_eq!(last.since(first), Err(EvaluationError::INTEGER_OVERFLOW));
    }

    #[test]
    fn days_are_counted_from_the_first() {
        for (text, day_of_year, day_of_week) in [
            ("1970-01-01T00:00:00Z", 0, 4),
            ("2000-12-31T00:00:00Z", 365, 0),
            ("2023-07-14T00:00:00Z", 194, 5),
            ("0001-01-01T00:00:00Z", 0, 1),
            ("9999-12-31T00:00:00Z", 364, 5),
        ] {
            let civil = Timestamp::parse(text).unwrap().civil(0);
            assert_eq!((civil.day_of_year, civil.day_of_week()), (day_of_year, day_of_week), "{text}");
        }
    }

    #[test]
    fn durations_are_seconds() {
        let rows = [(0, "0s"), (5_400_000_000_000, "5400s"), (250_000_000, "0.25s"), (-1, "-0.000000001s")];
        for (nanos, printed) in rows {
            assert_eq!(format_duration(nanos), printed);
        }
    }
}
