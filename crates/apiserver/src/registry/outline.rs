//! Reads the parts of an object that selectors read from its JSON, without decoding the rest.
//!
//! A server that starts reads every object of the cluster, most of which is containers, conditions and managed fields.
//! The selectable fields of built-in kinds are scalars, at most two levels deep.

use super::revision::Members;
use pintle_machinery::{Map, Value, codec::json};

/// The depth of the fields that an outline has.
const DEPTH: usize = 2;

/// Whether a selectable field, named by its path, is in the outline of an object.
pub(super) fn has_field(path: &str) -> bool {
    path.split('.').count() <= DEPTH && !path.contains('[')
}

/// The object's scalars, the scalars of its members, and its labels, as a tree. `None` if the bytes are not an object
/// as this server encodes it; the parts that are left out are checked for their nesting alone.
pub(super) fn outline(json: &[u8]) -> Option<Value> {
    std::str::from_utf8(json).ok()?;
    let (members, end) = read(json, 0, 1, false)?;
    matches!(json.get(end..)?, b"" | b"\n").then_some(Value::Object(members))
}

/// The members of the object at a position that an outline has, and the position after the object.
fn read(json: &[u8], at: usize, depth: usize, is_metadata: bool) -> Option<(Map, usize)> {
    let mut kept = Map::new();
    let mut members = Members::of(json, at)?;
    while let Some((name, value)) = members.next_member() {
        let decoded = match json.get(value)? {
            b'{' if depth < DEPTH => {
                let (decoded, end) = read(json, value, depth + 1, name == b"metadata")?;
                members.pass(end);
                Value::Object(decoded)
            }
            b'{' | b'[' if !is_metadata || name != b"labels" => {
                members.skip(value)?;
                continue;
            }
            _ => json::decode_any(members.skip(value)?).ok()?,
        };
        kept.insert(str::from_utf8(name).ok()?.to_owned(), decoded);
    }
    Some((kept, members.end()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_outline_has_the_labels_and_the_scalars_of_two_levels() {
        let pod = json!({
            "kind": "Pod", "apiVersion": "v1",
            "metadata": {
                "name": "a", "labels": {"app": "\"{web}\"", "x.y/z": ""}, "annotations": {"a": "b"},
                "managedFields": [{"fieldsV1": {"f:spec": {}}}]
            },
            "spec": {"containers": [{"name": "c"}], "nodeName": "n", "hostNetwork": true, "affinity": {"a": []}},
            "status": {"phase": "Running", "restarts": 7, "start": null},
            "list": [1, {"a": 2}],
        });
        let expected = json!({
            "kind": "Pod", "apiVersion": "v1",
            "metadata": {"name": "a", "labels": {"app": "\"{web}\"", "x.y/z": ""}},
            "spec": {"nodeName": "n", "hostNetwork": true},
            "status": {"phase": "Running", "restarts": 7, "start": null},
        });
        let text = pod.to_string();
        assert_eq!(outline(text.as_bytes()), Some(expected.clone()));
        assert_eq!(outline(format!("{text}\n").as_bytes()), Some(expected));
        assert_eq!(outline(b"{}"), Some(json!({})));
    }

    #[test]
    fn what_is_no_object_has_no_outline() {
        let text = r#"{"metadata":{"name":"a","labels":{"a":"b"}},"spec":{"list":[{"a":"b"}]}}"#;
        assert!(outline(text.as_bytes()).is_some());
        for end in 0..text.len() {
            assert_eq!(outline(&text.as_bytes()[..end]), None, "{end}");
        }
        for text in ["[]", "7", "{}x", "{}\n\n", r#"{"a":{"b":tru}}"#, r#"{"a":{"b":1]}"#, r#"{"a" :1}"#] {
            assert_eq!(outline(text.as_bytes()), None, "{text}");
        }
        assert_eq!(outline(b"{\"a\":[\"\xff\"]}"), None);
    }

    #[test]
    fn deep_fields_are_not_in_outlines() {
        assert!(has_field("spec.nodeName") && has_field("reason"));
        assert!(!has_field("spec.a.b") && !has_field("spec.list[0]"));
    }
}
