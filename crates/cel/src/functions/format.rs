//! `format`: replaces the clauses of a text by arguments
//! (<https://pkg.go.dev/github.com/google/cel-go/ext#readme-string-format>).
//!
//! The library version that Kubernetes uses formats `%f` and `%e` in the American English locale: thousands are
//! grouped, and exponents are superscript.

use super::bounded;
use super::conversions::{parse_double, to_string};
use crate::EvaluationError;
use crate::value::{List, Value, format_duration};
use pintle_go_forms::quote;

const DEFAULT_PRECISION: usize = 6;
/// The maximum number of fraction digits of a double; further digits are zeros.
const MAX_DIGITS: usize = 1100;

/// Replaces the clauses of a text.
pub(super) fn format(pattern: &str, args: &List<'_>) -> Result<String, EvaluationError> {
    let mut out = String::with_capacity(pattern.len());
    let mut rest = pattern;
    let mut index = 0;
    while let Some(position) = rest.find('%') {
        out.push_str(rest.get(..position).unwrap_or_default());
        rest = rest.get(position + 1..).unwrap_or_default();
        if let Some(after) = rest.strip_prefix('%') {
            out.push('%');
            rest = after;
            continue;
        }
        let Some(arg) = args.get(index) else {
            return Err(EvaluationError::failed(format!("index {index} out of range")));
        };
        let arg = arg?;
        if rest.is_empty() {
            return Err("unexpected end of string".into());
        }
        index += 1;
        let (precision, after) = precision(rest).map_err(|error| unparsed(&error))?;
        let Some(verb) = after.chars().next() else { return Err("unexpected end of string".into()) };
        rest = after.get(verb.len_utf8()..).unwrap_or_default();
        let precision = precision.unwrap_or(DEFAULT_PRECISION);
        bounded(out.len().saturating_add(precision))?;
        let text = match verb {
            's' => string(&arg),
            'd' => decimal(&arg),
            'f' => double(&arg, "fixed-point").map(|value| fixed(value, precision)),
            'e' => double(&arg, "scientific").map(scientific),
            'b' => binary(&arg),
            'x' => hex(&arg),
            'X' => hex(&arg).map(|text| text.to_ascii_uppercase()),
            'o' => octal(&arg),
            verb => return Err(unparsed(&format!("unrecognized formatting clause \"{verb}\""))),
        };
        match text {
            Ok(text) => out.push_str(&text),
            Err(error) if error.ends_evaluation() => return Err(error),
            Err(error) => return Err(EvaluationError::failed(format!("error during formatting: {error}"))),
        }
        bounded(out.len())?;
    }
    out.push_str(rest);
    Ok(out)
}

fn unparsed(error: &str) -> EvaluationError {
    EvaluationError::failed(format!("could not parse formatting clause: {error}"))
}

/// The requested precision, and the text after it.
fn precision(text: &str) -> Result<(Option<usize>, &str), String> {
    let Some(after) = text.strip_prefix('.') else { return Ok((None, text)) };
    let len = after.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, after) = after.split_at_checked(len).unwrap_or((after, ""));
    if after.is_empty() {
        return Err("error while parsing precision: could not find end of precision specifier".to_owned());
    }
    match digits.parse() {
        Ok(precision) => Ok((Some(precision), after)),
        Err(_) => {
            let problem = if digits.is_empty() { "invalid syntax" } else { "value out of range" };
            let digits = quote(digits);
            Err(format!(
                "error while parsing precision: error while converting precision to integer: strconv.Atoi: parsing \
                 {digits}: {problem}"
            ))
        }
    }
}

fn string(value: &Value<'_>) -> Result<String, EvaluationError> {
    match value {
        Value::List(list) => list_text(list),
        Value::Map(_) => map_text(value),
        Value::Null => Ok("null".to_owned()),
        Value::Type(name) => Ok(name.to_string()),
        Value::Optional(_) | Value::Opaque(_) | Value::Unknown(_) => Err(EvaluationError::failed(format!(
            "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, \
             and timestamps, was given {}",
            value.type_name()
        ))),
        value => match to_string(value) {
            Ok(text) => Ok(text.as_str().unwrap_or_default().to_owned()),
            Err(error) => Err(EvaluationError::failed(format!(
                "could not convert argument {} to string",
                quote(&error.to_string())
            ))),
        },
    }
}

fn decimal(value: &Value<'_>) -> Result<String, EvaluationError> {
    match value {
        Value::Int(value) => Ok(value.to_string()),
        Value::Uint(value) => Ok(value.to_string()),
        other => Err(EvaluationError::failed(format!(
            "decimal clause can only be used on integers, was given {}",
            other.type_name()
        ))),
    }
}

fn double(value: &Value<'_>, clause: &str) -> Result<f64, EvaluationError> {
    match value {
        Value::Double(value) => Ok(*value),
        Value::String(text) if matches!(text.as_str(), "NaN" | "Infinity" | "-Infinity") => {
            parse_double(text).ok_or_else(|| {
                EvaluationError::failed(format!("could not convert {} to float64", quote(text)))
            })
        }
        other => Err(EvaluationError::failed(format!(
            "{clause} clause can only be used on doubles, was given {}",
            other.type_name()
        ))),
    }
}

fn not_finite(value: f64) -> Option<&'static str> {
    match value {
        value if value.is_nan() => Some("NaN"),
        f64::INFINITY => Some("∞"),
        f64::NEG_INFINITY => Some("-∞"),
        _ => None,
    }
}

fn fixed(value: f64, precision: usize) -> String {
    if let Some(text) = not_finite(value) {
        return text.to_owned();
    }
    let mut text = format!("{:.digits$}", positive_zero(value), digits = precision.min(MAX_DIGITS));
    text.extend(std::iter::repeat_n('0', precision.saturating_sub(MAX_DIGITS)));
    let digits = text.trim_start_matches('-');
    let whole = digits.split('.').next().unwrap_or_default();
    let mut out = text.get(..text.len() - digits.len()).unwrap_or_default().to_owned();
    for (position, digit) in whole.chars().enumerate() {
        if position > 0 && (whole.len() - position).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out.push_str(digits.get(whole.len()..).unwrap_or_default());
    out
}

/// Formats `%e`. The reference ignores the requested precision.
fn scientific(value: f64) -> String {
    if let Some(text) = not_finite(value) {
        return text.to_owned();
    }
    let text = format!("{:.DEFAULT_PRECISION$e}", positive_zero(value));
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, digits) = match exponent.strip_prefix('-') {
        Some(digits) => ("⁻", digits),
        None => ("", exponent),
    };
    const RAISED: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let raised = |digit: u8| RAISED.get(usize::from(digit - b'0')).copied().unwrap_or_default();
    let exponent: String = format!("{digits:0>2}").bytes().map(raised).collect();
    format!("{mantissa}×10{sign}{exponent}")
}

fn positive_zero(value: f64) -> f64 {
    if value == 0.0 { 0.0 } else { value }
}

fn signed(value: i64, print: impl Fn(u64) -> String) -> String {
    let sign = if value < 0 { "-" } else { "" };
    format!("{sign}{}", print(value.unsigned_abs()))
}

fn binary(value: &Value<'_>) -> Result<String, EvaluationError> {
    match value {
        Value::Int(value) => Ok(signed(*value, |value| format!("{value:b}"))),
        Value::Uint(value) => Ok(format!("{value:b}")),
        Value::Bool(value) => Ok(if *value { "1" } else { "0" }.to_owned()),
        other => Err(EvaluationError::failed(format!(
            "only integers and bools can be formatted as binary, was given {}",
            other.type_name()
        ))),
    }
}

fn hex(value: &Value<'_>) -> Result<String, EvaluationError> {
    let bytes = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    match value {
        Value::Int(value) => Ok(signed(*value, |value| format!("{value:x}"))),
        Value::Uint(value) => Ok(format!("{value:x}")),
        Value::String(text) => Ok(bytes(text.as_bytes())),
        Value::Bytes(value) => Ok(bytes(value)),
        other => Err(EvaluationError::failed(format!(
            "only integers, byte buffers, and strings can be formatted as hex, was given {}",
            other.type_name()
        ))),
    }
}

fn octal(value: &Value<'_>) -> Result<String, EvaluationError> {
    match value {
        Value::Int(value) => Ok(signed(*value, |value| format!("{value:o}"))),
        Value::Uint(value) => Ok(format!("{value:o}")),
        other => Err(EvaluationError::failed(format!(
            "octal clause can only be used on integers, was given {}",
            other.type_name()
        ))),
    }
}

/// Formats a value inside a list or map, in the syntax of expressions.
fn member(value: &Value<'_>) -> Result<String, EvaluationError> {
    match value {
        Value::String(text) => Ok(quote(text)),
        Value::Bytes(_) => string(value).map(|text| format!("b{}", quote(&text))),
        Value::Timestamp(time) => Ok(format!("timestamp({})", quote(&time.format()))),
        Value::Duration(nanos) => Ok(format!("duration({})", quote(&format_duration(*nanos)))),
        Value::Double(value) => Ok(match value {
            value if value.is_nan() => "\"NaN\"".to_owned(),
            &f64::INFINITY => "\"+Inf\"".to_owned(),
            &f64::NEG_INFINITY => "\"-Inf\"".to_owned(),
            value => format!("{value:.DEFAULT_PRECISION$}"),
        }),
        Value::Optional(_) | Value::Opaque(_) | Value::Unknown(_) => {
            Err(EvaluationError::failed(format!("no formatting function for {}", value.type_name())))
        }
        value => string(value),
    }
}

fn list_text(list: &List<'_>) -> Result<String, EvaluationError> {
    let mut out = String::from("[");
    for (position, item) in list.iter().enumerate() {
        if position > 0 {
            out.push_str(", ");
        }
        out.push_str(&member(&item?)?);
        bounded(out.len())?;
    }
    out.push(']');
    Ok(out)
}

fn map_text(value: &Value<'_>) -> Result<String, EvaluationError> {
    let Value::Map(map) = value else { return Ok(String::new()) };
    let mut entries = Vec::with_capacity(map.len());
    let mut length = 2;
    for key in map.keys() {
        if !matches!(key, Value::String(_) | Value::Bool(_) | Value::Int(_) | Value::Uint(_)) {
            return Err(EvaluationError::failed(format!(
                "no formatting function for map key of type {}",
                key.type_name()
            )));
        }
        let value = match map.find(&key) {
            Ok(Some(value)) => member(&value)?,
            Ok(None) => {
                return Err(EvaluationError::failed(format!(
                    "could not find key: {}",
                    quote(&key.display())
                )));
            }
            Err(error) => return Err(error),
        };
        let key = member(&key)?;
        length += key.len() + value.len() + 3;
        bounded(length)?;
        entries.push((key, value));
    }
    entries.sort();
    let entries: Vec<_> = entries.iter().map(|(key, value)| format!("{key}:{value}")).collect();
    Ok(format!("{{{}}}", entries.join(", ")))
}
