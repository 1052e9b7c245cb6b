//! Conversions between types: `int("5")`, `string(1.5)`, `type(x)`.

use super::{Function, no_such_overload};
use crate::EvaluationError;
use crate::value::{
    Opaque, Text, Timestamp, Value, double_to_int, double_to_uint, format_duration, shortest,
};
use pintle_go_forms::parse_duration;
use std::borrow::Cow;

pub(super) fn lookup(name: &str) -> Option<Function> {
    Some(match name {
        "bool" => to_bool,
        "bytes" => to_bytes,
        "double" => to_double,
        "duration" => to_duration,
        "dyn" => |args| match args {
            [value] => Ok(std::mem::replace(value, Value::Null)),
            args => Err(no_such_overload("dyn", args)),
        },
        "int" => to_int,
        "string" => |args| match args {
            [value] => to_string(value),
            args => Err(no_such_overload("string", args)),
        },
        "timestamp" => to_timestamp,
        "type" => |args| match args {
            [value] => Ok(Value::Type(Text::from(value.type_name().to_owned()))),
            args => Err(no_such_overload("type", args)),
        },
        "uint" => to_uint,
        _ => return None,
    })
}

fn cannot_convert(from: &str, to: &str) -> EvaluationError {
    EvaluationError::failed(format!("type conversion error from '{from}' to '{to}'"))
}

fn to_bool<'a>(args: &mut [Value<'a>]) -> Result<Value<'a>, EvaluationError> {
    match args {
        [Value::Bool(value)] => Ok(Value::Bool(*value)),
        [Value::String(text)] => match text.as_str() {
            "1" | "t" | "T" | "TRUE" | "true" | "True" => Ok(Value::Bool(true)),
            "0" | "f" | "F" | "FALSE" | "false" | "False" => Ok(Value::Bool(false)),
            _ => Err(cannot_convert("string", "bool")),
        },
        args => Err(no_such_overload("bool", args)),
    }
}

fn to_bytes<'a>(args: &mut [Value<'a>]) -> Result<Value<'a>, EvaluationError> {
    match args {
        [Value::Bytes(bytes)] => Ok(Value::Bytes(bytes.clone())),
        [Value::String(text)] => Ok(Value::Bytes(text.as_bytes().into())),
        args => Err(no_such_overload("bytes", args)),
    }
}

fn to_double<'a>(args: &mut [Value<'a>]) -> Result<Value<'a>, EvaluationError> {
    Ok(Value::Double(match args {
        [Value::Double(value)] => *value,
        [Value::Int(value)] => *value as f64,
        [Value::Uint(value)] => *value as f64,
        [Value::String(text)] => parse_double(text).ok_or_else(|| cannot_convert("string", "double"))?,
        args => return Err(no_such_overload("double", args)),
    }))
}

/// Parses a double as Go does: digits may be separated by underscores, a number may be hexadecimal with a binary
/// exponent, values out of range are errors, and of the special words only infinity may have a sign.
pub(super) fn parse_double(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let sign = if text.starts_with('-') { -1.0 } else { 1.0 };
    match unsigned.to_ascii_lowercase().as_str() {
        "inf" | "infinity" => return Some(sign * f64::INFINITY),
        "nan" => return (unsigned.len() == text.len()).then_some(f64::NAN),
        _ => {}
    }
    let plain = without_underscores(unsigned)?;
    let value = match plain.strip_prefix("0x").or_else(|| plain.strip_prefix("0X")) {
        Some(hexadecimal) => parse_hexadecimal(hexadecimal)?,
        None if plain.starts_with(|c: char| c.is_ascii_digit() || c == '.') => plain.parse().ok()?,
        None => return None,
    };
    value.is_finite().then_some(sign * value)
}

/// Removes the underscores between digits; `None` if one has another position.
fn without_underscores(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains('_') {
        return Some(Cow::Borrowed(text));
    }
    let hexadecimal = text.starts_with("0x") || text.starts_with("0X");
    let is_digit = |byte: u8| byte.is_ascii_digit() || (hexadecimal && byte.is_ascii_hexdigit());
    let bytes = text.as_bytes();
    let stray = bytes.windows(3).any(|window| match window {
        // An underscore may also follow the prefix.
        [before, b'_', after] => {
            !(is_digit(*before) || (hexadecimal && before | 0x20 == b'x')) || !is_digit(*after)
        }
        _ => false,
    });
    let outside = text.starts_with('_') || text.ends_with('_');
    (!stray && !outside).then(|| Cow::Owned(text.replace('_', "")))
}

/// Parses hexadecimal digits, optionally with a point, and a mandatory binary exponent.
fn parse_hexadecimal(text: &str) -> Option<f64> {
    let (mantissa, exponent) = text.split_once(['p', 'P'])?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let exponent: i32 = exponent.parse().ok()?;
    // The number of digits is bounded, so each can be added separately.
    if whole.is_empty() && fraction.is_empty() || whole.len() + fraction.len() > 64 {
        return None;
    }
    let mut value = 0.0;
    for digit in whole.chars().chain(fraction.chars()) {
        value = value * 16.0 + f64::from(digit.to_digit(16)?);
    }
    let shift = exponent.checked_sub(4 * i32::try_from(fraction.len()).ok()?)?;
    // Two steps avoid a power out of range when the product is in range.
    let half = shift / 2;
    Some(value * 2f64.powi(half) * 2f64.powi(shift - half))
}

fn to_duration<'a>(args: &mut [Value<'a>]) -> Result<Value<'a>, EvaluationError> {
    const NAME: &str = "google.protobuf.Duration";
    match args {
        [Value::Duration(nanos)] => Ok(Value::Duration(*nanos)),
        [Value::String(text)] => match parse_duration(text) {
            Ok(nanos) => Ok(Value::Duration(nanos)),
            Err(_) => Err(cannot_convert("string", NAME)),
        },
        [Value::Int(_)] => Err(cannot_convert("int", NAME)),
        args => Err(no_such_overload("duration", args)),
    }
}

fn to_int<'a>(args: &mut [Value<'a>]) -> Result<Value<'a>, EvaluationError> {
    Ok(Value::Int(match args {
        [Value::Int(value)] => *value,
        [Value::Uint(value)] => i64::try_from(*value).map_err(|_| EvaluationError::INTEGER_OVERFLOW)?,
        [Value::Double(value)] => double_to_int(*value)?,
        [Value::Duration(nanos)] => *nanos,
        [Value::Timestamp(time)] => time.seconds,
        [Value::String(text)] => text.parse().map_err(|_| cannot_convert("string", "int"))?,
        args => return Err(no_such_overload("int", args)),
    }))
}

fn to_uint<'a>(args: &mut [Value<'a>]) -> Result<Value<'a>, EvaluationError> {
    Ok(Value::Uint(match args {
        [Value::Uint(value)] => *value,
        [Value::Int(value)] => u64::try_from(*value).map_err(|_| EvaluationError::UNSIGNED_OVERFLOW)?,
        [Value::Double(value)] => double_to_uint(*value)?,
        // An unsigned number has no sign.
        [Value::String(text)] if !text.starts_with('+') => {
            text.parse().map_err(|_| cannot_convert("string", "uint"))?
        }
        [Value::String(_)] => return Err(cannot_convert("string", "uint")),
        args => return Err(no_such_overload("uint", args)),
    }))
}

fn to_timestamp<'a>(args: &mut [Value<'a>]) -> Result<Value<'a>, EvaluationError> {
    Ok(Value::Timestamp(match args {
        [Value::Timestamp(time)] => *time,
        [Value::Int(seconds)] => Timestamp::from_seconds(*seconds)?,
        [Value::String(text)] => match Timestamp::parse(text) {
            Ok(time) => time.in_range()?,
            Err(_) => return Err(cannot_convert("string", "google.protobuf.Timestamp")),
        },
        args => return Err(no_such_overload("timestamp", args)),
    }))
}

/// Converts a value to text.
pub(super) fn to_string<'a>(value: &Value<'a>) -> Result<Value<'a>, EvaluationError> {
    Ok(Value::from(match value {
        Value::String(text) => return Ok(Value::String(text.clone())),
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Uint(value) => value.to_string(),
        Value::Double(value) => shortest(*value),
        Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => return Err("invalid UTF-8 in bytes, cannot convert to string".into()),
        },
        Value::Duration(nanos) => format_duration(*nanos),
        Value::Timestamp(time) => time.format(),
        Value::Opaque(opaque) => match &**opaque {
            Opaque::Ip(ip) => ip.to_string(),
            Opaque::Cidr(cidr) => cidr.to_string(),
            _ => return Err(no_such_overload("string", std::slice::from_ref(value))),
        },
        other => return Err(no_such_overload("string", std::slice::from_ref(other))),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn doubles_become_the_integers_they_are(value in any::<f64>()) {
            let wanted = value.trunc();
            match to_int(&mut [Value::Double(value)]) {
                Ok(Value::Int(int)) => prop_assert_eq!(int as f64, wanted),
                _ => prop_assert!(!(wanted > -9.3e18 && wanted < 9.2e18)),
            }
        }

        #[test]
        fn numbers_survive_their_texts(int in any::<i64>(), uint in any::<u64>(), double in any::<f64>()) {
            let text = to_string(&Value::Int(int)).unwrap();
            prop_assert!(matches!(to_int(&mut [text]), Ok(Value::Int(back)) if back == int));
            let text = to_string(&Value::Uint(uint)).unwrap();
            prop_assert!(matches!(to_uint(&mut [text]), Ok(Value::Uint(back)) if back == uint));
            let text = to_string(&Value::Double(double)).unwrap();
            let same = |back: f64| back == double || (back.is_nan() && double.is_nan());
            prop_assert!(matches!(to_double(&mut [text]), Ok(Value::Double(back)) if same(back)));
        }

        #[test]
        fn comparison_across_types_is_by_value(int in any::<i64>(), uint in any::<u64>()) {
            let (one, other) = (Value::Int(int), Value::Uint(uint));
            prop_assert_eq!(one.compare(&other), Ok(i128::from(int).cmp(&i128::from(uint))));
            prop_assert_eq!(one.equal(&other), Ok(i128::from(int) == i128::from(uint)));
            prop_assert_eq!(other.compare(&one), one.compare(&other).map(std::cmp::Ordering::reverse));
        }
    }

    #[test]
    fn doubles_are_read_as_go_reads_them() {
        let rows = [
            ("1.5", Some(1.5)),
            ("1e400", None),
            ("-1e400", None),
            ("Inf", Some(f64::INFINITY)),
            ("-infinity", Some(f64::NEG_INFINITY)),
            ("+nan", None),
            ("1_000", Some(1000.0)),
            ("1__0", None),
            ("_1", None),
            ("0x1p-2", Some(0.25)),
            ("0x1.8p1", Some(3.0)),
            ("0x10", None),
            ("", None),
            (" 1", None),
        ];
        for (text, value) in rows {
            assert_eq!(parse_double(text), value, "{text}");
        }
        assert!(parse_double("NaN").is_some_and(f64::is_nan));
        assert_eq!(crate::value::decimal(1e21), "1000000000000000000000");
    }
}
