//! Numbers of three types that compare with each other, and their conversions and formats.
//!
//! Comparison across types is by value, within the precision of a 64-bit float
//! (<https://github.com/google/cel-spec/blob/master/doc/langdef.md#ordering>).

use crate::EvaluationError;
use pintle_go_forms::{shortest_decimal, shortest_scientific};
use std::cmp::Ordering;

/// The first double beyond the largest `i64`.
const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;
/// The first double beyond the largest `u64`.
const TWO_TO_64: f64 = 18_446_744_073_709_551_616.0;

/// Compares doubles; NaN counts as equal, so callers test for it first.
pub(crate) fn compare_doubles(one: f64, other: f64) -> Ordering {
    one.partial_cmp(&other).unwrap_or(Ordering::Equal)
}

/// Compares a double with an integer.
pub(crate) fn compare_double_int(double: f64, int: i64) -> Ordering {
    if double < -TWO_TO_63 {
        Ordering::Less
    } else if double > TWO_TO_63 {
        Ordering::Greater
    } else {
        compare_doubles(double, int as f64)
    }
}

/// Compares a double with an unsigned integer.
pub(crate) fn compare_double_uint(double: f64, uint: u64) -> Ordering {
    if double < 0.0 {
        Ordering::Less
    } else if double > TWO_TO_64 {
        Ordering::Greater
    } else {
        compare_doubles(double, uint as f64)
    }
}

/// Compares an integer with an unsigned one.
pub(crate) fn compare_int_uint(int: i64, uint: u64) -> Ordering {
    i128::from(int).cmp(&i128::from(uint))
}

/// Truncates a double. Both ends of the range are rejected, the lower one although it would fit.
pub(crate) fn double_to_int(double: f64) -> Result<i64, EvaluationError> {
    match double > -TWO_TO_63 && double < TWO_TO_63 {
        true => Ok(double as i64),
        false => Err(EvaluationError::INTEGER_OVERFLOW),
    }
}

/// Truncates a double.
pub(crate) fn double_to_uint(double: f64) -> Result<u64, EvaluationError> {
    match (0.0..TWO_TO_64).contains(&double) {
        true => Ok(double as u64),
        false => Err(EvaluationError::UNSIGNED_OVERFLOW),
    }
}

/// The integer that equals a double.
pub(crate) fn exact_int(double: f64) -> Option<i64> {
    double_to_int(double).ok().filter(|int| *int as f64 == double)
}

/// The unsigned integer that equals a double.
pub(crate) fn exact_uint(double: f64) -> Option<u64> {
    double_to_uint(double).ok().filter(|uint| *uint as f64 == double)
}

/// Formats a double with the fewest digits that identify it, with an exponent below -4 or above 5: Go's `%g`.
pub(crate) fn shortest(double: f64) -> String {
    if let Some(text) = not_finite(double) {
        return text.to_owned();
    }
    let scientific = shortest_scientific(double);
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..6).contains(&exponent) {
        return decimal(double);
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs())
}

/// Formats a double without an exponent, with the fewest digits that identify it.
pub(crate) fn decimal(double: f64) -> String {
    match not_finite(double) {
        Some(text) => text.to_owned(),
        None => shortest_decimal(double),
    }
}

fn not_finite(double: f64) -> Option<&'static str> {
    if double.is_nan() {
        Some("NaN")
    } else if double == f64::INFINITY {
        Some("+Inf")
    } else if double == f64::NEG_INFINITY {
        Some("-Inf")
    } else {
        None
    }
}
