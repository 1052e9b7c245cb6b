//! Parses and formats durations as Go's `time` does (`1h2m3.5s`), in nanoseconds (<https://pkg.go.dev/time#ParseDuration>).

use crate::quote_ascii as quote;

const UNITS: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// The size of the smallest duration, which is negative.
const MAX: u64 = 1 << 63;

/// Parses a duration into nanoseconds.
///
/// # Errors
/// Go's message, when the text is malformed or the value overflows.
pub fn parse_duration(text: &str) -> Result<i64, String> {
    let invalid = || format!("time: invalid duration {}", quote(text));
    let negative = text.starts_with('-');
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let (whole, after) = split_digits(rest);
        let whole_nanos = match whole {
            "" => 0,
            whole => whole.parse::<u64>().ok().filter(|number| *number <= MAX).ok_or_else(invalid)?,
        };
        let (fraction, after) = match after.strip_prefix('.') {
            Some(after) => split_digits(after),
            None => ("", after),
        };
        if whole.is_empty() && fraction.is_empty() {
            return Err(invalid());
        }
        let unit_len = after.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, next) = after.split_at_checked(unit_len).unwrap_or((after, ""));
        if unit.is_empty() {
            return Err(format!("time: missing unit in duration {}", quote(text)));
        }
        let Some((_, scale)) = UNITS.iter().find(|(name, _)| *name == unit) else {
            return Err(format!("time: unknown unit {} in duration {}", quote(unit), quote(text)));
        };
        let whole_nanos = whole_nanos.checked_mul(*scale).ok_or_else(invalid)?;
        total = whole_nanos
            .checked_add(fraction_of(fraction, *scale))
            .and_then(|part| total.checked_add(part))
            .filter(|total| *total <= MAX)
            .ok_or_else(invalid)?;
        rest = next;
    }
    if negative {
        return Ok((total as i64).wrapping_neg());
    }
    i64::try_from(total).map_err(|_| invalid())
}

fn split_digits(text: &str) -> (&str, &str) {
    let len = text.bytes().take_while(u8::is_ascii_digit).count();
    text.split_at_checked(len).unwrap_or((text, ""))
}

/// Nanoseconds of the digits after a decimal point, truncated. Digits beyond the range of an integer are ignored.
fn fraction_of(digits: &str, scale: u64) -> u64 {
    let (mut value, mut divisor) = (0u64, 1.0);
    for digit in digits.bytes() {
        let next = value.checked_mul(10).and_then(|value| value.checked_add(u64::from(digit - b'0')));
        match next.filter(|next| *next <= MAX) {
            Some(next) => (value, divisor) = (next, divisor * 10.0),
            None => break,
        }
    }
    (value as f64 * (scale as f64 / divisor)) as u64
}

/// Formats nanoseconds as Go prints a duration.
pub fn format_duration(nanos: i64) -> String {
    if nanos == 0 {
        return "0s".to_owned();
    }
    let sign = if nanos < 0 { "-" } else { "" };
    let size = nanos.unsigned_abs();
    if size < 1_000 {
        return format!("{sign}{size}ns");
    }
    if size < 1_000_000 {
        return format!("{sign}{}µs", decimal(size, 1_000));
    }
    if size < 1_000_000_000 {
        return format!("{sign}{}ms", decimal(size, 1_000_000));
    }
    let minutes = size / 60_000_000_000;
    let seconds = decimal(size % 60_000_000_000, 1_000_000_000);
    match minutes {
        0 => format!("{sign}{seconds}s"),
        1..60 => format!("{sign}{minutes}m{seconds}s"),
        _ => format!("{sign}{}h{}m{seconds}s", minutes / 60, minutes % 60),
    }
}

/// `value / unit` with as many digits as needed.
fn decimal(value: u64, unit: u64) -> String {
    let fraction = value % unit;
    if fraction == 0 {
        return (value / unit).to_string();
    }
    let width = unit.ilog10() as usize;
    let text = format!("{}.{fraction:0width$}", value / unit);
    text.trim_end_matches('0').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_and_printed_as_go_does() {
        for (text, printed) in [
            ("0", "0s"),
            ("0s", "0s"),
            ("5s", "5s"),
            ("90s", "1m30s"),
            ("1h", "1h0m0s"),
            ("1.5h", "1h30m0s"),
            ("-2m3.4s", "-2m3.4s"),
            ("100ms", "100ms"),
            ("1.5ms", "1.5ms"),
            ("15us", "15µs"),
            ("7ns", "7ns"),
            (".5s", "500ms"),
            ("1.000000001s", "1.000000001s"),
            ("0.3333333333333333333h", "20m0s"),
            ("0.100000000000000000000h", "6m0s"),
            ("39h9m14.425s", "39h9m14.425s"),
            ("-2562047h47m16.854775808s", "-2562047h47m16.854775808s"),
            ("2562047h47m16.854775807s", "2562047h47m16.854775807s"),
        ] {
            assert_eq!(parse_duration(text).map(format_duration).as_deref(), Ok(printed), "{text}");
        }
    }

    #[test]
    fn errors_are_gos() {
        for (text, expected) in [
            ("", r#"time: invalid duration """#),
            ("x", r#"time: invalid duration "x""#),
            ("1", r#"time: missing unit in duration "1""#),
            ("1d", r#"time: unknown unit "d" in duration "1d""#),
            ("9999999h", r#"time: invalid duration "9999999h""#),
            ("-", r#"time: invalid duration "-""#),
            ("99999999999999999999x", r#"time: invalid duration "99999999999999999999x""#),
            ("1é", r#"time: unknown unit "\xc3\xa9" in duration "1\xc3\xa9""#),
        ] {
            assert_eq!(parse_duration(text), Err(expected.to_owned()), "{text}");
        }
    }
}
