//! Converts JSON to values by a schema.

use super::{Json, List, Map, Timestamp, Value};
use crate::EvaluationError;
use crate::schema::{Schema, SchemaKind};
use pintle_go_forms::parse_duration;
use regex::Regex;
use std::sync::LazyLock;

/// Converts a JSON value by its schema. Data that does not fit is an error of the expression that reads it; this is
/// rare, since data is validated before.
pub(crate) fn adapt<'a>(json: &'a Json, schema: &'a dyn Schema) -> Result<Value<'a>, EvaluationError> {
    if json.is_null() {
        return match schema.nullable() {
            true => Ok(Value::Null),
            false => Err("invalid data, got null for schema with nullable=false".into()),
        };
    }
    let unexpected = |wanted: &str| {
        EvaluationError::failed(format!("invalid data, expected {wanted}, got {}", go_type(json)))
    };
    let kind = schema.kind();
    match kind {
        SchemaKind::Object | SchemaKind::Map => match json {
            Json::Object(members) => Ok(Value::Map(Map::json(members, Some(schema)))),
            _ => Err("invalid data, expected a map for the provided schema with type=object".into()),
        },
        SchemaKind::Array => match json {
            Json::Array(items) => Ok(Value::List(List::json(items, Some(schema)))),
            _ => Err("invalid data, expected an array for the provided schema with type=array".into()),
        },
        SchemaKind::String
        | SchemaKind::Duration
        | SchemaKind::Date
        | SchemaKind::DateTime
        | SchemaKind::Byte => match json {
            Json::String(text) => adapt_string(text, kind),
            _ => Err(unexpected("string")),
        },
        SchemaKind::Number => match json.as_f64() {
            Some(number) => Ok(Value::Double(number)),
            None => Err(unexpected("float")),
        },
        SchemaKind::Integer => match json.as_i64() {
            Some(number) => Ok(Value::Int(number)),
            None => Err(unexpected("int")),
        },
        SchemaKind::Boolean => match json {
            Json::Bool(value) => Ok(Value::Bool(*value)),
            _ => Err(unexpected("bool")),
        },
        SchemaKind::IntOrString => match (json, json.as_i64()) {
            (Json::String(text), _) => Ok(Value::from(text.as_str())),
            (_, Some(number)) => Ok(Value::Int(number)),
            _ => Err("invalid data, expected XIntOrString value to be either a string or integer".into()),
        },
        SchemaKind::Unknown => Ok(Value::Unknown(json)),
    }
}

/// Converts a JSON value without a schema: whole numbers are integers, others doubles.
pub(crate) fn adapt_untyped(json: &Json) -> Value<'_> {
    match json {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => Value::Int(number),
            (None, Some(number)) => Value::Uint(number),
            _ => Value::Double(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => Value::from(text.as_str()),
        Json::Array(items) => Value::List(List::json(items, None)),
        Json::Object(members) => Value::Map(Map::json(members, None)),
    }
}

fn adapt_string(text: &str, kind: SchemaKind) -> Result<Value<'_>, EvaluationError> {
    let failed =
        |what: &str, error: String| Err(EvaluationError::failed(format!("Invalid {what} {text}: {error}")));
    match kind {
        SchemaKind::Duration => match parse_lenient_duration(text) {
            Ok(nanos) => Ok(Value::Duration(nanos)),
            Err(error) => failed("duration", error),
        },
        SchemaKind::Date => match Timestamp::parse_date(text) {
            Ok(time) => Ok(Value::Timestamp(time)),
            Err(error) => failed("date formatted string", error),
        },
        SchemaKind::DateTime => match parse_lenient_date_time(text) {
            Ok(time) => Ok(Value::Timestamp(time)),
            Err(error) => failed("date-time formatted string", error),
        },
        // Formats are validated in the standard alphabet, and decoded in that for URLs.
        SchemaKind::Byte => match pintle_go_forms::base64::decode_url(text) {
            Ok(bytes) => Ok(Value::Bytes(bytes.into())),
            Err(error) => failed("byte formatted string", error),
        },
        _ => Ok(Value::from(text)),
    }
}

/// Parses Go's durations, and durations with units in words (`2 days 3 hours`), as format `duration` allows.
fn parse_lenient_duration(text: &str) -> Result<i64, String> {
    const UNITS: [(&[&str], i64); 8] = [
        (&["ns", "nano"], 1),
        (&["us", "µs", "micro"], 1_000),
        (&["ms", "milli"], 1_000_000),
        (&["s", "sec"], 1_000_000_000),
        (&["m", "min"], 60_000_000_000),
        (&["h", "hr", "hour"], 3_600_000_000_000),
        (&["d", "day"], 86_400_000_000_000),
        (&["w", "wk", "week"], 604_800_000_000_000),
    ];
    static PART: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new("([0-9]+)[\t\n\x0c\r ]*([A-Za-zµ]+)").ok());
    if let Ok(nanos) = parse_duration(text) {
        return Ok(nanos);
    }
    let mut total: i64 = 0;
    let mut found = false;
    for part in PART.iter().flat_map(|pattern| pattern.captures_iter(text)) {
        let (_, [number, unit]) = part.extract();
        let number: i64 =
            number.parse().map_err(|_| format!("strconv.Atoi: parsing \"{number}\": value out of range"))?;
        let unit = unit.to_lowercase();
        for (names, nanos) in UNITS {
            for (position, name) in names.iter().enumerate() {
                // The last name also matches as a prefix: `day`, `days`.
                if unit == *name || (position + 1 == names.len() && unit.starts_with(name)) {
                    found = true;
                    total = total.wrapping_add(number.wrapping_mul(nanos));
                }
            }
        }
    }
    if found { Ok(total) } else { Err(format!("unable to parse {text} as duration")) }
}

/// Parses RFC 3339, a time without a zone, which means UTC, or an empty text, which means 1970.
fn parse_lenient_date_time(text: &str) -> Result<Timestamp, String> {
    if text.is_empty() {
        return Ok(Timestamp { seconds: 0, nanos: 0, offset: 0 });
    }
    let time = Timestamp::parse(text);
    match time {
        Err(_) if !text.ends_with('Z') => Timestamp::parse(&format!("{text}Z")).or(time),
        _ => time,
    }
}

/// The name of the Go type of a decoded JSON value.
fn go_type(json: &Json) -> &'static str {
    match json {
        Json::Null => "<nil>",
        Json::Bool(_) => "bool",
        Json::Number(number) if number.is_i64() => "int64",
        Json::Number(_) => "float64",
        Json::String(_) => "string",
        Json::Array(_) => "[]interface {}",
        Json::Object(_) => "map[string]interface {}",
    }
}
