//! Formats numbers as Go's JSON encoder does.

use pintle_go_forms::{shortest_decimal, shortest_scientific, shortest_scientific32};
use pintle_tree::Number;

/// Appends a number.
pub(crate) fn write_number(out: &mut Vec<u8>, number: &Number) {
    if let Some(value) = number.as_i64() {
        write_i64(out, value);
    } else if let Some(value) = number.as_u64() {
        out.extend_from_slice(value.to_string().as_bytes());
    } else {
        write_f64(out, number.as_f64().unwrap_or_default());
    }
}

/// Appends an integer.
pub(crate) fn write_i64(out: &mut Vec<u8>, value: i64) {
    let mut digits = [0; 20];
    let mut start = digits.len();
    let mut rest = value.unsigned_abs();
    loop {
        start -= 1;
        if let Some(digit) = digits.get_mut(start) {
            *digit = b'0' + (rest % 10) as u8;
        }
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if value < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(digits.get(start..).unwrap_or_default());
}

/// Appends a double: the shortest digits that parse to the same value, with an exponent below -6 or from 21 on, as in
/// ECMAScript.
pub(crate) fn write_f64(out: &mut Vec<u8>, value: f64) {
    let size = value.abs();
    if size != 0.0 && !(1e-6..1e21).contains(&size) {
        let text = shortest_scientific(value);
        // Go writes the sign of positive exponents.
        match text.split_once('e') {
            Some((digits, exponent)) if !exponent.starts_with('-') => {
                out.extend_from_slice(format!("{digits}e+{exponent}").as_bytes());
            }
            _ => out.extend_from_slice(text.as_bytes()),
        }
    } else if value == 0.0 && value.is_sign_negative() {
        out.extend_from_slice(b"-0");
    } else {
        out.extend_from_slice(shortest_decimal(value).as_bytes());
    }
}

/// Formats a double as Go's `%g` does, with the shortest digits.
pub(crate) fn format_g(value: f64) -> String {
    general(&shortest_scientific(value))
}

/// As [`format_g`], in single precision.
pub(crate) fn format_g32(value: f64) -> String {
    general(&shortest_scientific32(value as f32))
}

/// Converts Rust's exponent form, which has the shortest digits.
fn general(text: &str) -> String {
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(mantissa) => ("-", mantissa),
        None => ("", mantissa),
    };
    if !(-4..6).contains(&exponent) {
        let exponent_sign = if exponent < 0 { '-' } else { '+' };
        return format!("{sign}{mantissa}e{exponent_sign}{:02}", exponent.abs());
    }
    let digits: String = mantissa.chars().filter(|&c| c != '.').collect();
    match usize::try_from(exponent) {
        Err(_) => format!("{sign}0.{}{digits}", "0".repeat(exponent.unsigned_abs() as usize - 1)),
        Ok(before) if digits.len() <= before + 1 => {
            format!("{sign}{digits}{}", "0".repeat(before + 1 - digits.len()))
        }
        Ok(before) => {
            let (whole, fraction) = digits.split_at_checked(before + 1).unwrap_or((&digits, ""));
            format!("{sign}{whole}.{fraction}")
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn general_form_has_an_exponent_beyond_six_digits() {
        for (value, expected) in [
            (0.0, "0"),
            (1.5, "1.5"),
            (-100000.0, "-100000"),
            (1000000.0, "1e+06"),
            (1234567.5, "1.2345675e+06"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (0.25, "0.25"),
            (1e100, "1e+100"),
        ] {
            assert_eq!(super::format_g(value), expected);
        }
        assert_eq!(super::format_g32(0.1), "0.1");
    }

    #[test]
    fn floats_are_printed_as_go_does() {
        for (value, expected) in [
            (1.0, "1"),
            (0.0, "0"),
            (1.5, "1.5"),
            (-2.25, "-2.25"),
            (1e20, "100000000000000000000"),
            (1e21, "1e+21"),
            (1.5e300, "1.5e+300"),
            (0.000001, "0.000001"),
            (0.0000001, "1e-7"),
            (123456789.125, "123456789.125"),
        ] {
            let mut out = Vec::new();
            super::write_f64(&mut out, value);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }

    #[test]
    fn integers_are_printed_to_the_ends_of_their_range() {
        for value in [0, 7, -7, 10, i64::MAX, i64::MIN] {
            let mut out = Vec::new();
            super::write_i64(&mut out, value);
            assert_eq!(String::from_utf8(out).unwrap(), value.to_string());
        }
    }
}
