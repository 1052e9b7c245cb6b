//! Parses and formats times: RFC 3339 as Go's `time.Parse` accepts it, with Go's messages.

use pintle_go_forms::quote_ascii as quote;

const RFC3339: &str = "2006-01-02T15:04:05Z07:00";
const RFC3339_MICRO: &str = "2006-01-02T15:04:05.000000Z07:00";

/// Seconds from the epoch to Go's zero time, the first second of the year 1.
const ZERO: i64 = -62_135_596_800;
const DAY: i64 = 86_400;

/// A point in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    /// Seconds since 1970 in UTC.
    pub seconds: i64,
    /// Nanoseconds after that second.
    pub nanos: u32,
}

impl Timestamp {
    /// Whether this is Go's zero time, which means that no time is set.
    pub fn is_zero(self) -> bool {
        self.seconds == ZERO && self.nanos == 0
    }

    /// Formats the time with whole seconds, as `metav1.Time`.
    pub fn to_seconds(self) -> String {
        let mut out = Vec::with_capacity("2006-01-02T15:04:05Z".len());
        write_civil(&mut out, self.seconds);
        out.push(b'Z');
        String::from_utf8(out).unwrap_or_default()
    }

    /// Formats the time with six digits after the second, as `metav1.MicroTime`.
    pub fn to_micros(self) -> String {
        let mut out = Vec::with_capacity("2006-01-02T15:04:05.000000Z".len());
        write_civil(&mut out, self.seconds);
        out.push(b'.');
        write_digits::<6>(&mut out, (self.nanos / 1000).into());
        out.push(b'Z');
        String::from_utf8(out).unwrap_or_default()
    }
}

/// Parses a `metav1.Time`; fractions of a second are allowed.
///
/// # Errors
/// Go's message, when the text is malformed.
pub fn parse_time(text: &str) -> Result<Timestamp, String> {
    Parser { text, rest: text, layout: RFC3339 }.parse()
}

/// Parses a `metav1.MicroTime`, which must have exactly six digits after the second.
///
/// # Errors
/// Go's message, when the text is malformed.
pub fn parse_micro_time(text: &str) -> Result<Timestamp, String> {
    Parser { text, rest: text, layout: RFC3339_MICRO }.parse()
}

/// Whether a text is a time in UTC with whole seconds, and therefore already in canonical form.
pub(crate) fn is_canonical_time(text: &str) -> bool {
    text.len() == 20 && text.ends_with('Z') && parse_time(text).is_ok_and(|time| !time.is_zero())
}

struct Parser<'a> {
    text: &'a str,
    rest: &'a str,
    layout: &'static str,
}

impl<'a> Parser<'a> {
    fn parse(mut self) -> Result<Timestamp, String> {
        let hold = self.rest;
        let year = match hold.get(..4).map(|year| (year, year.parse::<i64>())) {
            Some((digits, Ok(year))) if digits.bytes().all(|byte| byte.is_ascii_digit()) => year,
            _ => return Err(self.cannot(hold, "2006")),
        };
        self.rest = hold.get(4..).unwrap_or_default();
        self.expect("-")?;
        let month = self.number(true, "01", "month", 1, 12)?;
        self.expect("-")?;
        let day = self.number(true, "02", "", 0, i64::MAX)?;
        self.expect("T")?;
        let hour = self.number(false, "15", "hour", 0, 23)?;
        self.expect(":")?;
        let minute = self.number(true, "04", "minute", 0, 59)?;
        self.expect(":")?;
        let second = self.number(true, "05", "second", 0, 59)?;
        let nanos = self.fraction()?;
        let offset = self.zone()?;
        if !self.rest.is_empty() {
            return Err(self.out_of(&format!("extra text: {}", quote(self.rest))));
        }
        if day < 1 || day > days_in(month, year) {
            return Err(self.out_of("day out of range"));
        }
        let days = days_from_civil(year, month, day);
        let seconds = days * DAY + hour * 3600 + minute * 60 + second - offset;
        Ok(Timestamp { seconds, nanos })
    }

    fn expect(&mut self, prefix: &str) -> Result<(), String> {
        self.rest = self.rest.strip_prefix(prefix).ok_or_else(|| self.cannot(self.rest, prefix))?;
        Ok(())
    }

    /// One or two digits; two if `fixed`.
    fn number(&mut self, fixed: bool, element: &str, what: &str, min: i64, max: i64) -> Result<i64, String> {
        let hold = self.rest;
        let digits = hold.bytes().take(2).take_while(u8::is_ascii_digit).count();
        if digits == 0 || (fixed && digits == 1) {
            return Err(self.cannot(hold, element));
        }
        let (number, rest) = hold.split_at_checked(digits).unwrap_or((hold, ""));
        let number = number.parse().unwrap_or(0);
        self.rest = rest;
        if number < min || number > max {
            return Err(self.out_of(&format!("{what} out of range")));
        }
        Ok(number)
    }

    fn fraction(&mut self) -> Result<u32, String> {
        let hold = self.rest;
        let point = hold.starts_with(['.', ',']);
        let digits = hold.bytes().skip(1).take_while(u8::is_ascii_digit).count();
        let taken = if self.layout == RFC3339_MICRO {
            if !point || digits < 6 {
                return Err(self.cannot(hold, ".000000"));
            }
            6
        } else if point && digits > 0 {
            digits
        } else {
            return Ok(0);
        };
        self.rest = hold.get(1 + taken..).unwrap_or_default();
        let digits = hold.bytes().skip(1).take(taken).chain(std::iter::repeat(b'0')).take(9);
        Ok(digits.fold(0, |nanos, digit| nanos * 10 + u32::from(digit - b'0')))
    }

    fn zone(&mut self) -> Result<i64, String> {
        let hold = self.rest;
        if let Some(rest) = hold.strip_prefix('Z') {
            self.rest = rest;
            return Ok(0);
        }
        let bytes = hold.as_bytes();
        let [sign, h1, h2, b':', m1, m2, ..] = bytes else { return Err(self.cannot(hold, "Z07:00")) };
        if ![sign, h1, h2, m1, m2].iter().all(|byte| byte.is_ascii()) {
            return Err(self.cannot(hold, "Z07:00"));
        }
        self.rest = hold.get(6..).unwrap_or_default();
        let two = |a: &u8, b: &u8| {
            (a.is_ascii_digit() && b.is_ascii_digit()).then(|| i64::from((a - b'0') * 10 + (b - b'0')))
        };
        let (Some(hours), Some(minutes)) = (two(h1, h2), two(m1, m2)) else {
            return Err(self.cannot(hold, "Z07:00"));
        };
        if hours > 24 {
            return Err(self.out_of("time zone offset hour out of range"));
        }
        if minutes > 60 {
            return Err(self.out_of("time zone offset minute out of range"));
        }
        let offset = hours * 3600 + minutes * 60;
        match sign {
            b'+' => Ok(offset),
            b'-' => Ok(-offset),
            _ => Err(self.cannot(hold, "Z07:00")),
        }
    }

    fn cannot(&self, value: &str, element: &str) -> String {
        let (text, layout) = (quote(self.text), quote(self.layout));
        format!("parsing time {text} as {layout}: cannot parse {} as {}", quote(value), quote(element))
    }

    fn out_of(&self, message: &str) -> String {
        format!("parsing time {}: {message}", quote(self.text))
    }
}

fn days_in(month: i64, year: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970 to a date, computed in 400-year eras that start in March.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// Appends date and time of a second. Digits are written one by one: with `fmt`, a time takes five times as many
/// instructions.
fn write_civil(out: &mut Vec<u8>, seconds: i64) {
    let days = seconds.div_euclid(DAY) + 719_468;
    let second = seconds.rem_euclid(DAY);
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    match year {
        0..=9999 => write_digits::<4>(out, year),
        _ => out.extend_from_slice(format!("{year:04}").as_bytes()),
    }
    let parts =
        [(b'-', month), (b'-', day), (b'T', second / 3600), (b':', second / 60 % 60), (b':', second % 60)];
    for (separator, number) in parts {
        out.push(separator);
        write_digits::<2>(out, number);
    }
}

/// Appends the last `WIDTH` decimal digits of a number that is not negative.
fn write_digits<const WIDTH: usize>(out: &mut Vec<u8>, mut number: i64) {
    let mut digits = [b'0'; WIDTH];
    for digit in digits.iter_mut().rev() {
        *digit += (number % 10) as u8;
        number /= 10;
    }
    out.extend_from_slice(&digits);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_in_utc() {
        for (text, seconds) in [
            ("2008-01-01T01:01:01Z", "2008-01-01T01:01:01Z"),
            ("2024-02-29T23:30:00-01:00", "2024-03-01T00:30:00Z"),
            ("2024-01-01T00:00:00.999999999Z", "2024-01-01T00:00:00Z"),
            ("2024-01-01T00:00:00,5+00:30", "2023-12-31T23:30:00Z"),
            ("2024-01-01T5:00:00Z", "2024-01-01T05:00:00Z"),
            ("1969-12-31T23:59:59Z", "1969-12-31T23:59:59Z"),
            ("0001-01-01T00:00:01Z", "0001-01-01T00:00:01Z"),
            ("9999-12-31T23:59:59Z", "9999-12-31T23:59:59Z"),
        ] {
            assert_eq!(parse_time(text).unwrap().to_seconds(), seconds, "{text}");
        }
        assert_eq!(
            parse_micro_time("2024-01-01T00:00:00.120000Z").unwrap().to_micros(),
            "2024-01-01T00:00:00.120000Z"
        );
        for (seconds, text) in [
            (253_402_300_800, "10000-01-01T00:00:00Z"),
            (-62_135_596_801, "0000-12-31T23:59:59Z"),
            (-62_167_219_201, "-001-12-31T23:59:59Z"),
        ] {
            assert_eq!(Timestamp { seconds, nanos: 0 }.to_seconds(), text);
        }
        assert!(parse_time("0001-01-01T00:00:00Z").unwrap().is_zero());
        assert_eq!(parse_time("1970-01-02T00:00:01Z").unwrap().seconds, 86_401);
    }

    #[test]
    fn errors_are_gos() {
        for (text, expected) in [
            ("", r#"parsing time "" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "2006""#),
            ("x", r#"parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006""#),
            ("2024", r#"parsing time "2024" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "-""#),
            ("2024-13-01T00:00:00Z", r#"parsing time "2024-13-01T00:00:00Z": month out of range"#),
            ("2024-02-30T00:00:00Z", r#"parsing time "2024-02-30T00:00:00Z": day out of range"#),
            ("2024-02-03T24:00:00Z", r#"parsing time "2024-02-03T24:00:00Z": hour out of range"#),
            (
                "2024-02-03",
                r#"parsing time "2024-02-03" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "T""#,
            ),
            (
                "2024-02-03T00:00:00",
                r#"parsing time "2024-02-03T00:00:00" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "Z07:00""#,
            ),
            ("2024-02-03T00:00:00Zx", r#"parsing time "2024-02-03T00:00:00Zx": extra text: "x""#),
            (
                "2024-02-03T00:00:00é",
                r#"parsing time "2024-02-03T00:00:00\xc3\xa9" as "2006-01-02T15:04:05Z07:00": cannot parse "\xc3\xa9" as "Z07:00""#,
            ),
        ] {
            assert_eq!(parse_time(text), Err(expected.to_owned()), "{text}");
        }
        assert_eq!(
            parse_micro_time("2024-02-03T00:00:00Z"),
            Err(r#"parsing time "2024-02-03T00:00:00Z" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "Z" as ".000000""#.to_owned())
        );
    }
}
