//! `IntOrString`: a number, or a percentage of one.

use crate::Value;
use pintle_go_forms::quote;

/// The message for a value that is neither a number nor a percentage.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct IntOrStringError(String);

/// Returns the number, or the percentage of `total`, rounded up or down.
pub fn scaled_value_from_int_or_percent(
    value: &Value,
    total: i64,
    round_up: bool,
) -> Result<i64, IntOrStringError> {
    if let Some(number) = value.as_i64() {
        return Ok(number);
    }
    let Some(text) = value.as_str() else {
        return Err(IntOrStringError("nil value for IntOrString".to_owned()));
    };
    let percent = percent(text)?;
    let hundredths = i128::from(percent) * i128::from(total);
    let quotient = hundredths.div_euclid(100);
    let rounded = if round_up && hundredths.rem_euclid(100) != 0 { quotient + 1 } else { quotient };
    Ok(i64::try_from(rounded).unwrap_or(if rounded < 0 { i64::MIN } else { i64::MAX }))
}

/// Returns the number of a percentage, if the value is one.
pub fn percent_value(value: &Value) -> Option<i64> {
    percent(value.as_str()?).ok()
}

fn percent(text: &str) -> Result<i64, IntOrStringError> {
    let invalid = |detail: String| IntOrStringError(format!("invalid value for IntOrString: {detail}"));
    let Some(digits) = text.strip_suffix('%') else {
        return Err(invalid("invalid type: string is not a percentage".to_owned()));
    };
    digits.parse().map_err(|_| {
        let cause = if !digits.is_empty()
            && digits.trim_start_matches(['-', '+']).bytes().all(|b| b.is_ascii_digit())
        {
            "value out of range"
        } else {
            "invalid syntax"
        };
        invalid(format!("invalid value {}: strconv.Atoi: parsing {}: {cause}", quote(text), quote(digits)))
    })
}

/// The printed form: the number or the text.
pub fn int_or_string_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn percentages_scale() {
        let rows = [
            (json!(3), 10, true, Ok(3)),
            (json!("25%"), 10, true, Ok(3)),
            (json!("25%"), 10, false, Ok(2)),
            (json!("100%"), 7, false, Ok(7)),
            (json!("0%"), 7, true, Ok(0)),
            (
                json!("7"),
                7,
                true,
                Err("invalid value for IntOrString: invalid type: string is not a percentage"),
            ),
            (
                json!("a%"),
                7,
                true,
                Err(
                    "invalid value for IntOrString: invalid value \"a%\": strconv.Atoi: parsing \"a\": invalid syntax",
                ),
            ),
        ];
        for (value, total, round_up, expected) in rows {
            let result = scaled_value_from_int_or_percent(&value, total, round_up);
            assert_eq!(result.map_err(|error| error.to_string()), expected.map_err(str::to_owned), "{value}");
        }
    }
}
