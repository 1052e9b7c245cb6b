//! `IntOrString`: a number, or a percentage of one.

use crate::Value;

/// Returns the number of a percentage such as `25%`, if the value is one.
pub fn percent_value(value: &Value) -> Option<i64> {
    value.as_str()?.strip_suffix('%')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_tree::json;

    #[test]
    fn percentages_are_read() {
        let rows = [
            (json!("25%"), Some(25)),
            (json!("+0%"), Some(0)),
            (json!("-7%"), Some(-7)),
            (json!("99999999999999999999%"), None),
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
