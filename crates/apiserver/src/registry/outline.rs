//! Reads the parts of an object that selectors read from its JSON, without decoding the rest.
//!
//! A server that starts reads every object of the cluster, most of which is containers, conditions and managed fields.
//! The selectable fields of built-in kinds are scalars, at most two levels deep.

use super::revision::Members;
use pintle_machinery::{Map, Value, codec::json};
use pintle_schema::{SchemaRef, Type};

/// The depth of the fields that an outline has.
const DEPTH: usize = 2;

/// Whether a selectable field, named by its path, is in the outline of an object.
pub(super) fn has_field(path: &str) -> bool {
    path.split('.').count() <= DEPTH && !path.contains('[')
}

/// The object's scalars, the scalars of its members, and its labels, as a tree. `None` if the bytes are not an object of
/// the schema as this server encodes it; the parts that are left out are checked for their nesting alone.
pub(super) fn outline(json: &[u8], schema: SchemaRef<'_>) -> Option<Value> {
    str::from_utf8(json).ok()?;
    let (members, end) = read(json, 0, 1, schema, false)?;
    matches!(json.get(end..)?, b"" | b"\n").then_some(Value::Object(members))
}

/// The members of the object at a position that an outline has, and the position after the object.
fn read(
    json: &[u8],
    at: usize,
    depth: usize,
    schema: SchemaRef<'_>,
    is_metadata: bool,
) -> Option<(Map, usize)> {
    let mut kept = Map::new();
    let mut members = Members::of(json, at)?;
    while let Some((name, value)) = members.next_member() {
        let name = str::from_utf8(name).ok()?;
        let field = schema.field(name)?.ty();
        let decoded = match (json.get(value)?, field.ty()) {
            (b'{', Type::Struct) if depth < DEPTH => {
                let (decoded, end) = read(json, value, depth + 1, field, name == "metadata")?;
                members.pass(end);
                Value::Object(decoded)
            }
            (b'{', _) if is_metadata && name == "labels" => {
                let labels = json::decode_any(members.skip(value)?).ok()?;
                labels.as_object()?.values().all(Value::is_string).then_some(labels)?
            }
            (b'{' | b'[', _) => {
                members.skip(value)?;
                continue;
            }
            (_, scalar) => {
                let decoded = json::decode_any(members.skip(value)?).ok()?;
                is_of_type(&decoded, scalar).then_some(decoded)?
            }
        };
        kept.insert(name, decoded);
    }
    Some((kept, members.end()?))
}

/// Whether a scalar is of a type. It may not be known to be: then the object is decoded as a whole.
fn is_of_type(scalar: &Value, expected: Type) -> bool {
    match scalar {
        Value::Bool(_) => expected == Type::Bool,
        Value::Number(number) => {
            number.is_i64() && matches!(expected, Type::Int32 | Type::Int64 | Type::IntOrString)
        }
        Value::String(_) => {
            use Type::{Bytes, Duration, IntOrString, MicroTime, Quantity, String, Time};
            matches!(expected, String | Bytes | Time | MicroTime | Duration | Quantity | IntOrString)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;
    use pintle_schema::Schema;

    fn of_pod(json: &[u8]) -> Option<Value> {
        outline(json, Schema::builtin().by_kind("", "v1", "Pod").unwrap())
    }

    #[test]
    fn an_outline_has_the_labels_and_the_scalars_of_two_levels() {
        let pod = json!({
            "kind": "Pod", "apiVersion": "v1",
            "metadata": {
                "name": "a", "labels": {"app": "\"{web}\"", "x.y/z": ""}, "annotations": {"a": "b"},
                "managedFields": [{"fieldsV1": {"f:spec": {}}}], "generation": 7
            },
            "spec": {"containers": [{"name": "c"}], "nodeName": "n", "hostNetwork": true, "affinity": {"a": []}},
            "status": {"phase": "Running", "conditions": [1, {"a": 2}], "startTime": "2026-01-01T00:00:00Z"},
        });
        let expected = json!({
            "kind": "Pod", "apiVersion": "v1",
            "metadata": {"name": "a", "labels": {"app": "\"{web}\"", "x.y/z": ""}, "generation": 7},
            "spec": {"nodeName": "n", "hostNetwork": true},
            "status": {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"},
        });
        let text = pod.to_string();
        assert_eq!(of_pod(text.as_bytes()), Some(expected.clone()));
        assert_eq!(of_pod(format!("{text}\n").as_bytes()), Some(expected));
        assert_eq!(of_pod(b"{}"), Some(json!({})));
    }

    #[test]
    fn what_is_no_object_of_the_schema_has_no_outline() {
        let text = r#"{"metadata":{"name":"a","labels":{"a":"b"}},"spec":{"containers":[{"name":"b"}]}}"#;
        assert!(of_pod(text.as_bytes()).is_some());
        for end in 0..text.len() {
            assert_eq!(of_pod(&text.as_bytes()[..end]), None, "{end}");
        }
        let rows = [
            "[]",
            "7",
            "{}x",
            "{}\n\n",
            r#"{"spec":{"hostPID":tru}}"#,
            r#"{"spec":{"priority":1]}"#,
            r#"{"kind" :"a"}"#,
            r#"{"metadata":{"name":1}}"#,
            r#"{"metadata":{"labels":{"a":1}}}"#,
            r#"{"spec":{"hostPID":"true"}}"#,
            r#"{"spec":null}"#,
            r#"{"unknown":"a"}"#,
        ];
        for text in rows {
            assert_eq!(of_pod(text.as_bytes()), None, "{text}");
        }
        assert_eq!(of_pod(b"{\"spec\":{\"containers\":[\"\xff\"]}}"), None);
    }

    #[test]
    fn deep_fields_are_not_in_outlines() {
        assert!(has_field("spec.nodeName") && has_field("reason"));
        assert!(!has_field("spec.a.b") && !has_field("spec.list[0]"));
    }
}
