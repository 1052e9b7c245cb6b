//! `IntOrString`: a number, or a percentage of one.

use crate::Value;

/// Returns the number of a valid percentage such as `25%`, if the value is one.
pub fn percent_value(value: &Value) -> Option<i64> {
    let digits = value.as_str()?.strip_suffix('%')?;
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    // Go takes the greatest number for one that is too great.
    is_number.then(|| digits.parse().unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_tree::json;

    #[test]
    fn percentages_are_read() {
        let rows = [
            (json!("25%"), Some(25)),
            (json!("+0%"), None),
            (json!("-7%"), None),
            (json!("99999999999999999999%"), Some(i64::MAX)),
            (json!("%"), None),
            (json!("a%"), None),
            (json!("7"), None),
            (json!(7), None),
        ];
        for (value, expected) in rows {
            assert_eq!(percent_value(&value), expected, "{value}");
        }
    }
}
