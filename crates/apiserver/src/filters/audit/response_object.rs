//! Converts a response body to JSON for audit events.

use http::{HeaderMap, header};
use pintle_machinery::{
    GroupVersion, Value, ValueExt,
    codec::{json, protobuf, yaml},
};
use pintle_schema::{Schema, SchemaRef};
use std::borrow::Cow;

/// The JSON of the object in a response body; `None` when the body is not an object.
pub(super) fn json_of<'a>(headers: &HeaderMap, body: &'a [u8]) -> Option<Cow<'a, [u8]>> {
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok())?;
    match content_type.split(';').next().unwrap_or_default().trim() {
        "application/json" => Some(Cow::Borrowed(body)),
        "application/yaml" => of_yaml(body).map(Cow::Owned),
        "application/vnd.kubernetes.protobuf" => {
            let message = protobuf::open(body).ok()?;
            let schema = built_in(&message.api_version, &message.kind)?;
            let decoded = protobuf::decode(body, schema).ok()?;
            Some(Cow::Owned(encode(decoded.value, schema)))
        }
        _ => None,
    }
}

/// YAML has its members sorted, as JSON has those of custom resources only.
fn of_yaml(body: &[u8]) -> Option<Vec<u8>> {
    let converted = yaml::own_to_json(body).ok()?;
    let meta = json::type_meta(&converted.json).ok()?;
    let Some(schema) = built_in(&meta.api_version, &meta.kind) else { return Some(converted.json) };
    let decoded = yaml::decode_converted(converted, schema).ok()?;
    Some(encode(decoded.value, schema))
}

fn built_in(api_version: &str, kind: &str) -> Option<SchemaRef<'static>> {
    let version = GroupVersion::parse(api_version)?;
    Schema::builtin().by_kind(&version.group, &version.version, kind)
}

/// JSON always shows the items of a list, which a tree omits when there are none.
fn encode(mut value: Value, schema: SchemaRef<'_>) -> Vec<u8> {
    let is_list = value.str_at("kind").ends_with("List") && schema.field("items").is_some();
    if is_list && value.at("items").is_none() {
        value.set("items", Value::Array(Vec::new()));
    }
    json::encode(&value, schema)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;
    use pintle_machinery::json;

    #[test]
    fn objects_are_shown_as_their_json_has_them() {
        let check = |media_type: &'static str, body: &[u8], expected: &str| {
            let headers =
                HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static(media_type))]);
            let json = json_of(&headers, body).unwrap();
            assert_eq!(str::from_utf8(&json).unwrap().trim_end(), expected);
        };
        let status = "apiVersion: v1\nkind: Status\nmetadata: {}\nstatus: Failure\n";
        let ordered = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure"}"#;
        check("application/yaml", status.as_bytes(), ordered);
        let custom = "apiVersion: example.com/v1\nkind: Widget\n";
        check("application/yaml", custom.as_bytes(), r#"{"apiVersion":"example.com/v1","kind":"Widget"}"#);
        let empty = r#"{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[]}"#;
        check("application/yaml", b"apiVersion: v1\nitems: []\nkind: PodList\nmetadata: {}\n", empty);
        let schema = built_in("v1", "PodList").unwrap();
        let list = json!({"kind": "PodList", "apiVersion": "v1", "metadata": {}});
        check("application/vnd.kubernetes.protobuf", &protobuf::encode(&list, schema).unwrap(), empty);
    }
}
