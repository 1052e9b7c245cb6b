//! Error messages for strategic merge patches whose result does not fit the object's type.
//!
//! Kube-apiserver merges maps and then converts the result to the Go type: the messages are those of that conversion,
//! and show the patch as Go prints maps.

use pintle_machinery::Value;
use pintle_schema::{SchemaRef, Type};

/// Go's message about the first value of a patched object that does not fit its type. `None` for errors inside strings
/// and in types with a JSON decoder of their own.
pub(super) fn problem(patched: &Value, schema: SchemaRef<'_>) -> Option<String> {
    let found = || go_kind(patched);
    match (schema.ty(), patched) {
        (_, Value::Null) => None,
        (Type::Struct, Value::Object(members)) => {
            // Fields are checked in the order of the type.
            schema.fields().find_map(|field| problem(members.get(field.name())?, field.ty()))
        }
        (Type::Struct, _) => Some(format!("cannot restore struct from: {}", found())),
        (Type::Map, Value::Object(members)) => {
            members.values().find_map(|member| problem(member, schema.value()))
        }
        (Type::Map, _) => Some(format!("cannot restore map from {}", found())),
        (Type::List, Value::Array(items)) => items.iter().find_map(|item| problem(item, schema.item())),
        (Type::List, _) => Some(format!("cannot restore slice from {}", found())),
        (Type::Bytes, Value::String(_) | Value::Array(_)) => None,
        (Type::Bytes, _) => Some(format!("cannot restore slice from {}", found())),
        (Type::String, Value::String(_))
        | (Type::Bool, Value::Bool(_))
        | (Type::Float64, Value::Number(_)) => None,
        (Type::Int32 | Type::Int64, Value::Number(number)) => match number.as_f64() {
            Some(float) if float.fract() != 0.0 => {
                Some(format!("cannot convert float64 to {}", go_name(schema.ty())))
            }
            _ => None,
        },
        // The conversion does not turn integers into strings.
        (Type::String, Value::Number(number)) if !number.is_f64() => {
            Some("cannot convert int64 to string".to_owned())
        }
        (Type::String | Type::Bool | Type::Int32 | Type::Int64 | Type::Float64, _) => {
            Some(format!("unrecognized type: {}", go_name(schema.ty())))
        }
        _ => None,
    }
}

fn go_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "invalid",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
    }
}

fn go_name(scalar: Type) -> &'static str {
    match scalar {
        Type::Bool => "bool",
        Type::Int32 => "int32",
        Type::Int64 => "int64",
        Type::Float64 => "float64",
        _ => "string",
    }
}

/// A value as Go prints it: `map[a:[1 2] b:<nil>]`. Recursion is as deep as the value, whose depth is bounded like that
/// of every body.
pub(super) fn go_text(value: &Value) -> String {
    let mut out = String::new();
    write(&mut out, value);
    out
}

fn write(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("<nil>"),
        Value::String(text) => out.push_str(text),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(' ');
                }
                write(out, item);
            }
            out.push(']');
        }
        Value::Object(members) => {
            out.push_str("map[");
            for (index, (name, member)) in members.iter().enumerate() {
                if index > 0 {
                    out.push(' ');
                }
                out.push_str(name);
                out.push(':');
                write(out, member);
            }
            out.push(']');
        }
        scalar => out.push_str(&scalar.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;
    use pintle_schema::Schema;

    #[test]
    fn values_of_a_wrong_type_have_the_messages_of_go() {
        let schema = Schema::builtin().by_kind("", "v1", "ConfigMap").unwrap();
        let check = |patch: Value, expected: Option<&str>| {
            assert_eq!(problem(&patch, schema).as_deref(), expected, "{patch}");
        };
        check(json!({"data": {"a": "b"}, "metadata": {"labels": null}}), None);
        check(json!({"data": "x"}), Some("cannot restore map from string"));
        check(json!({"data": [1]}), Some("cannot restore map from slice"));
        check(json!({"data": true}), Some("cannot restore map from bool"));
        check(json!({"data": {"a": 1}}), Some("cannot convert int64 to string"));
        check(json!({"metadata": []}), Some("cannot restore struct from: slice"));
        check(json!({"metadata": {"labels": "x"}}), Some("cannot restore map from string"));
        check(json!({"metadata": {"labels": {"a": true}}}), Some("unrecognized type: string"));
        check(json!({"metadata": {"finalizers": "x"}}), Some("cannot restore slice from string"));
        check(json!({"metadata": {"ownerReferences": {"a": 1}}}), Some("cannot restore slice from map"));
        check(json!({"metadata": {"ownerReferences": [1]}}), Some("cannot restore struct from: int64"));
        check(json!({"metadata": {"generation": "x"}}), Some("unrecognized type: int64"));
        check(
            json!({"metadata": {"deletionGracePeriodSeconds": 1.5}}),
            Some("cannot convert float64 to int64"),
        );
        check(json!({"immutable": "x"}), Some("unrecognized type: bool"));
        check(json!({"binaryData": {"a": "%"}}), None);
        check(json!({"data": 1, "metadata": "x"}), Some("cannot restore struct from: string"));
    }

    #[test]
    fn patches_are_shown_as_go_prints_maps() {
        let patch = json!({"b": [1, "x y", [], null], "a": {"c": true, "d": {}}});
        assert_eq!(go_text(&patch), "map[a:map[c:true d:map[]] b:[1 x y [] <nil>]]");
    }
}
