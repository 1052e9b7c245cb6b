//! Restores objects from merged maps, as kube-apiserver does after strategic merge patches and server-side apply: it
//! converts numbers to the types of their fields, and has messages of its own about values that do not fit.

use crate::{Value, codec::json};
use pintle_schema::{SchemaRef, Type};

/// Go's message about the first value of a patched object that does not fit its type.
pub fn problem(patched: &Value, schema: SchemaRef<'_>) -> Option<String> {
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
        (Type::Bytes, Value::String(_)) => {
            own_decoder_problem(patched, schema).map(|error| format!("error decoding from json: {error}"))
        }
        (Type::Bytes, Value::Array(items)) => {
            let is_wrong = items.iter().any(|item| !item.is_number() && !item.is_null());
            is_wrong.then(|| "unrecognized type: uint8".to_owned())
        }
        (Type::Bytes, _) => Some(format!("cannot restore slice from {}", found())),
        (Type::String, Value::String(_))
        | (Type::Bool, Value::Bool(_))
        | (Type::Float64, Value::Number(_)) => None,
        (Type::Int32 | Type::Int64, Value::Number(number)) => match number.as_f64() {
            Some(float) if float.fract() != 0.0 => {
                Some(format!("cannot convert float64 to {}", schema.go_type()))
            }
            _ => None,
        },
        // The conversion does not turn integers into strings.
        (Type::String, Value::Number(number)) if !number.is_f64() => {
            Some(format!("cannot convert int64 to {}", schema.go_type()))
        }
        (Type::String | Type::Bool | Type::Int32 | Type::Int64 | Type::Float64, _) => {
            Some(format!("unrecognized type: {}", go_name(schema.ty())))
        }
        (
            Type::Time
            | Type::MicroTime
            | Type::Duration
            | Type::Quantity
            | Type::IntOrString
            | Type::Union(_),
            _,
        ) => own_decoder_problem(patched, schema),
        (Type::RawExtension | Type::FieldsV1 | Type::Json | Type::Any, _) => None,
    }
}

/// The error of a type's own JSON decoder, which knows only the position inside of its value.
fn own_decoder_problem(value: &Value, schema: SchemaRef<'_>) -> Option<String> {
    json::from_value(value, schema).err().map(|error| error.to_string())
}

/// Converts the numbers of a merged object to the types of their fields as Go does: integers wrap around, and floats
/// without a fraction become integers.
pub fn convert_numbers(merged: &mut Value, schema: SchemaRef<'_>) {
    match (schema.ty(), merged) {
        (Type::Struct, Value::Object(members)) => {
            for (name, member) in members.iter_mut() {
                if let Some(field) = schema.field(name) {
                    convert_numbers(member, field.ty());
                }
            }
        }
        (Type::Map, Value::Object(members)) => {
            members.values_mut().for_each(|member| convert_numbers(member, schema.value()));
        }
        (Type::List, Value::Array(items)) => {
            items.iter_mut().for_each(|item| convert_numbers(item, schema.item()));
        }
        (ty @ (Type::Int32 | Type::Int64), value) => {
            let wide = match value.as_number() {
                Some(number) if number.is_f64() => {
                    number.as_f64().filter(|float| float.fract() == 0.0).map(to_int64)
                }
                Some(number) => number.as_i64(),
                None => None,
            };
            if let Some(wide) = wide {
                *value = Value::from(if ty == Type::Int32 { i64::from(wide as i32) } else { wide });
            }
        }
        _ => {}
    }
}

/// The integer of a float without a fraction; the least one for floats out of range, as on amd64.
fn to_int64(float: f64) -> i64 {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if (-LIMIT..LIMIT).contains(&float) { float as i64 } else { i64::MIN }
}

/// Whether a patch has numbers that [`convert_numbers`] may change.
pub fn has_wide_numbers(patch: &Value) -> bool {
    match patch {
        Value::Number(number) => number.as_i64().is_none_or(|number| i32::try_from(number).is_err()),
        Value::Array(items) => items.iter().any(has_wide_numbers),
        Value::Object(members) => members.values().any(has_wide_numbers),
        Value::Null | Value::Bool(_) | Value::String(_) => false,
    }
}

/// Whether a patch has numbers that are no integers of 64 bits: the tree keeps their value, and not their digits.
pub fn has_floats(patch: &Value) -> bool {
    match patch {
        Value::Number(number) => number.is_f64(),
        Value::Array(items) => items.iter().any(has_floats),
        Value::Object(members) => members.values().any(has_floats),
        Value::Null | Value::Bool(_) | Value::String(_) => false,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;
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
        check(json!({"binaryData": {"a": ["x"]}}), Some("unrecognized type: uint8"));
        check(
            json!({"binaryData": {"a": "%"}}),
            Some("error decoding from json: illegal base64 data at input byte 0"),
        );
        check(json!({"data": 1, "metadata": "x"}), Some("cannot restore struct from: string"));
    }

    #[test]
    fn types_with_decoders_of_their_own_do_not_know_their_position() {
        let schema = Schema::builtin().by_kind("", "v1", "Service").unwrap();
        let target = |value: Value| json!({"spec": {"ports": [{"port": 1, "targetPort": value}]}});
        let check = |patch: Value, expected: &str| {
            assert_eq!(problem(&patch, schema).as_deref(), Some(expected), "{patch}");
        };
        check(target(json!(true)), "json: cannot unmarshal bool into Go value of type int32");
        check(
            target(json!(99999999999_i64)),
            "json: cannot unmarshal number 99999999999 into Go value of type int32",
        );
        check(json!({"spec": {"sessionAffinity": 1}}), "cannot convert int64 to v1.ServiceAffinity");
    }

    #[test]
    fn a_decoder_that_does_not_know_its_position_knows_the_fields_below() {
        let schema =
            Schema::builtin().by_kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition").unwrap();
        let check = |items: Value, expected: &str| {
            let root = json!({"openAPIV3Schema": {"properties": {"a": {"items": items}}}});
            let definition = json!({"spec": {"versions": [{"schema": root}]}});
            let expected = format!("json: cannot unmarshal number into Go {expected}");
            assert_eq!(problem(&definition, schema), Some(expected), "{definition}");
        };
        check(json!({"type": 1}), "struct field JSONSchemaProps.type of type string");
        check(
            json!({"properties": {"b": {"type": 1}}}),
            "struct field JSONSchemaProps.properties.type of type string",
        );
        check(
            json!({"externalDocs": {"url": 1}}),
            "struct field ExternalDocumentation.externalDocs.url of type string",
        );
        // Of a second decoder, the struct that holds its value is named.
        check(json!({"items": {"type": 1}}), "struct field JSONSchemaProps.items.type of type string");
        check(
            json!({"items": {"externalDocs": {"url": 1}}}),
            "struct field JSONSchemaProps.items.externalDocs.url of type string",
        );
        check(json!([1]), "value of type v1.JSONSchemaProps");
    }

    #[test]
    fn numbers_are_converted_to_the_types_of_their_fields() {
        let schema = Schema::builtin().by_kind("", "v1", "Service").unwrap();
        let check = |port: Value, expected: Value| {
            let service = |port: Value| json!({"spec": {"ports": [{"port": port}]}});
            let mut merged = service(port);
            convert_numbers(&mut merged, schema);
            assert_eq!(merged, service(expected));
        };
        check(json!(2147483648_i64), json!(-2147483648_i64));
        check(json!(80.0), json!(80));
        check(json!(1e30), json!(0));
        check(json!(80.5), json!(80.5));
        assert!(has_wide_numbers(&json!({"a": [{"b": 1.0}]})));
        assert!(!has_wide_numbers(&json!({"a": [{"b": 1}, "2"]})));
    }
}
