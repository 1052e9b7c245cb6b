//! Formats texts as Go does, for messages that clients see.

use crate::{Value, codec::number::format_g};

/// Escapes JSON as Go's encoder does: characters with a meaning in HTML are escaped.
pub fn escape_html(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out
}

/// The name of a decoded value's type, as Go's `%T` formats it.
pub fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// Formats a value as Go's `%v`: `map[a:1 b:[x y]]`.
pub fn go_format(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.to_string(),
        Value::Number(number) => go_number(number),
        Value::Bool(boolean) => boolean.to_string(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(go_format).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(members) => {
            let members: Vec<String> =
                members.iter().map(|(name, value)| format!("{name}:{}", go_format(value))).collect();
            format!("map[{}]", members.join(" "))
        }
    }
}

/// Formats a value as Go's `%s`, which marks any value but a string as a wrong type.
pub fn go_string_format(value: &Value) -> String {
    match value {
        Value::String(text) => text.to_string(),
        Value::Null => "%!s(<nil>)".to_owned(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(go_string_format).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(members) => {
            let members: Vec<String> =
                members.iter().map(|(name, value)| format!("{name}:{}", go_string_format(value))).collect();
            format!("map[{}]", members.join(" "))
        }
        scalar => format!("%!s({}={})", go_type(scalar), go_format(scalar)),
    }
}

/// The name of a decoded value's type, as Go's `%s` formats it.
pub fn go_type_string(value: &Value) -> &'static str {
    match value {
        Value::Null => "%!s(<nil>)",
        value => go_type(value),
    }
}

/// The name of a value's type in messages of Go's JSON decoder.
pub fn go_json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Formats floats in the shortest form that parses back, with an exponent when large or tiny: `1.5e+06`.
fn go_number(number: &pintle_tree::Number) -> String {
    match number.as_f64().filter(|_| number.is_f64()) {
        Some(float) => format_g(float),
        None => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_formatted_as_in_go() {
        let value = pintle_tree::json!({"b": [1, "x", null], "a": {"c": 1.5, "d": true}, "e": 1e21, "f": 2.0, "g": 12_345_678.5});
        assert_eq!(go_format(&value), "map[a:map[c:1.5 d:true] b:[1 x <nil>] e:1e+21 f:2 g:1.23456785e+07]");
        assert_eq!(go_string_format(&pintle_tree::json!(1)), "%!s(int64=1)");
        assert_eq!(escape_html("\"<a>&\""), "\"\\u003ca\\u003e\\u0026\"");
    }
}
