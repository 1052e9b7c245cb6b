//! Go's conversions between integers, doubles and texts.

use pintle_machinery::codec::json;
use pintle_machinery::{Number, Value};

/// The largest integer up to which a double represents all integers exactly.
const MAX_SAFE: f64 = 9_007_199_254_740_991.0;

/// Whether a double represents an integer, within rounding.
pub(super) fn is_integral(value: f64) -> bool {
    if !(-MAX_SAFE..=MAX_SAFE).contains(&value) {
        return false;
    }
    let rounded = value.round();
    value == rounded || (rounded != 0.0 && (value - rounded).abs() < 1e-9 * rounded.abs())
}

/// The integer form of a number in messages.
pub(super) fn as_integer(value: &Number) -> Option<i64> {
    if let Some(integer) = value.as_i64() {
        return Some(integer);
    }
    let float = value.as_f64().filter(|_| value.is_f64())?;
    // Larger values do not fit a 64-bit integer.
    (float.fract() == 0.0 && (-9.223_372_036_854_776e18..9.223_372_036_854_776e18).contains(&float))
        .then_some(float as i64)
}

/// Converts like the reference's processor: a value out of range becomes the minimum integer.
pub(super) fn truncate(value: f64) -> i64 {
    match (-9.223_372_036_854_776e18..9.223_372_036_854_776e18).contains(&value) {
        true => value as i64,
        false => i64::MIN,
    }
}

/// Whether a value equals an enum value after conversion to its type: numbers are converted into each other, and a
/// number into the text of that code point.
pub(super) fn converts_to(value: &Value, allowed: &Value) -> bool {
    match (value, allowed) {
        (Value::Null, _) | (_, Value::Null) => false,
        (Value::Number(value), Value::Number(allowed)) => match (value.as_i64(), allowed.as_i64()) {
            (Some(value), Some(allowed)) => value == allowed,
            (None, Some(allowed)) => value.as_f64().is_some_and(|value| truncate(value.trunc()) == allowed),
            (_, None) => value.as_f64() == allowed.as_f64(),
        },
        (Value::Number(value), Value::String(allowed)) => {
            value.as_i64().is_some_and(|code| allowed == code_point(code).encode_utf8(&mut [0; 4]))
        }
        (value, allowed) => value == allowed,
    }
}

/// The character of a number, as in Go's conversion of integers to strings.
pub(super) fn code_point(code: i64) -> char {
    u32::try_from(code).ok().and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// Encodes JSON as Go does.
pub(super) fn to_json(value: &Value) -> String {
    String::from_utf8(json::encode_any(value)).unwrap_or_default()
}
