//! Validates numbers, with Go's conversions between integers and doubles.

use pintle_machinery::codec::json;
use serde_json::{Number, Value};

use super::Sink;
use super::problem::Problem;
use crate::structural::node::{Constraint, JsonType};
use crate::structural::path::Path;

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

pub(super) fn check<S: Sink>(
    constraints: &[Constraint],
    ty: Option<JsonType>,
    format: Option<&str>,
    value: &Number,
    path: &Path<'_>,
    sink: &mut S,
) {
    let range = Range { ty, format: ty.and(format) };
    range.check("Checked", value, path, sink);
    for constraint in constraints {
        if let Constraint::MultipleOf(factor) = constraint {
            let fits = range.check("MultipleOf", &double(*factor), path, sink);
            multiple_of(value, *factor, fits, path, sink);
        }
    }
    for constraint in constraints {
        if let Constraint::Minimum { limit, exclusive } = constraint {
            let fits = range.check("Minimum boundary", &double(*limit), path, sink);
            let rest = if *exclusive { "greater than" } else { "greater than or equal to" };
            limits(value, *limit, fits, path, sink, rest, |order| match order {
                std::cmp::Ordering::Less => true,
                std::cmp::Ordering::Equal => *exclusive,
                std::cmp::Ordering::Greater => false,
            });
        }
    }
    for constraint in constraints {
        if let Constraint::Maximum { limit, exclusive } = constraint {
            let fits = range.check("Maximum boundary", &double(*limit), path, sink);
            let rest = if *exclusive { "less than" } else { "less than or equal to" };
            limits(value, *limit, fits, path, sink, rest, |order| match order {
                std::cmp::Ordering::Greater => true,
                std::cmp::Ordering::Equal => *exclusive,
                std::cmp::Ordering::Less => false,
            });
        }
    }
}

/// The range of numbers of a type and format.
struct Range<'f> {
    ty: Option<JsonType>,
    format: Option<&'f str>,
}

impl Range<'_> {
    fn check<S: Sink>(&self, what: &str, value: &Number, path: &Path<'_>, sink: &mut S) -> bool {
        let fits = match self.ty {
            Some(JsonType::Integer) => match (as_integer(value), self.format) {
                (None, _) => false,
                (Some(integer), Some("int32")) => i32::try_from(integer).is_ok(),
                (Some(_), _) => true,
            },
            _ if self.format == Some("float") => {
                value.as_f64().is_some_and(|value| (value as f32).is_finite())
            }
            _ => true,
        };
        if !fits {
            let ty = self.ty.map_or("", JsonType::name);
            sink.problem(|| Problem::out_of_range(what, ty, self.format, path));
        }
        fits
    }
}

/// The integer form of a number in messages.
fn as_integer(value: &Number) -> Option<i64> {
    if let Some(integer) = value.as_i64() {
        return Some(integer);
    }
    let float = value.as_f64().filter(|_| value.is_f64())?;
    // Larger values do not fit a 64-bit integer.
    (float.fract() == 0.0 && (-9.223_372_036_854_776e18..9.223_372_036_854_776e18).contains(&float))
        .then_some(float as i64)
}

/// Converts like the reference's processor: a value out of range becomes the minimum integer.
pub(in crate::structural) fn truncate(value: f64) -> i64 {
    match (-9.223_372_036_854_776e18..9.223_372_036_854_776e18).contains(&value) {
        true => value as i64,
        false => i64::MIN,
    }
}

fn double(value: f64) -> Number {
    Number::from_f64(value).unwrap_or_else(|| 0.into())
}

fn multiple_of<S: Sink>(value: &Number, factor: f64, fits: bool, path: &Path<'_>, sink: &mut S) {
    match value.as_i64().filter(|_| fits) {
        Some(integer) => {
            let factor = truncate(factor);
            if factor <= 0 {
                sink.problem(|| Problem::factor_not_positive(path, &factor.into()));
            } else if integer % factor != 0 {
                sink.problem(|| {
                    Problem::beyond_limit(path, &integer.into(), "a multiple of", &factor.into())
                });
            }
        }
        None => {
            let float = value.as_f64().unwrap_or_default();
            if factor <= 0.0 {
                sink.problem(|| Problem::factor_not_positive(path, &factor.into()));
                return;
            }
            let multiple = if factor < 1.0 { 1.0 / factor * float } else { float / factor };
            if !is_integral(multiple) {
                sink.problem(|| Problem::beyond_limit(path, &float.into(), "a multiple of", &factor.into()));
            }
        }
    }
}

fn limits<S: Sink>(
    value: &Number,
    limit: f64,
    fits: bool,
    path: &Path<'_>,
    sink: &mut S,
    rest: &str,
    is_beyond: impl Fn(std::cmp::Ordering) -> bool,
) {
    match value.as_i64().filter(|_| fits) {
        Some(integer) => {
            let limit = truncate(limit);
            if is_beyond(integer.cmp(&limit)) {
                sink.problem(|| Problem::beyond_limit(path, &integer.into(), rest, &limit.into()));
            }
        }
        None => {
            let float = value.as_f64().unwrap_or_default();
            if float.partial_cmp(&limit).is_some_and(is_beyond) {
                sink.problem(|| Problem::beyond_limit(path, &float.into(), rest, &limit.into()));
            }
        }
    }
}

/// Whether a value equals an enum value after conversion to its type: numbers are converted into each other, and a
/// number into the text of that code point.
pub(in crate::structural) fn converts_to(value: &Value, allowed: &Value) -> bool {
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
pub(in crate::structural) fn code_point(code: i64) -> char {
    u32::try_from(code).ok().and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// Encodes JSON as Go does.
pub(super) fn to_json(value: &Value) -> String {
    String::from_utf8(json::encode_any(value)).unwrap_or_default()
}
