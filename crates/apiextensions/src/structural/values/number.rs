//! Validates numbers.

use pintle_machinery::Number;

use super::problem::Problem;
use super::sink::Sink;
use crate::structural::node::{Constraint, JsonType};
use crate::structural::number::{as_integer, is_integral, truncate};
use crate::structural::path::Path;

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
            let ty = match self.ty {
                Some(JsonType::Integer) => "integer",
                Some(JsonType::Number) => "number",
                _ => "",
            };
            sink.problem(|| Problem::out_of_range(what, ty, self.format, path));
        }
        fits
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
