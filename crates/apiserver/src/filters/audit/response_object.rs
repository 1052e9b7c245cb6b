//! Converts a response body to JSON for audit events.

use http::{HeaderMap, header};
use pintle_machinery::{
    GroupVersion,
    codec::{json, protobuf, yaml},
};
use pintle_schema::Schema;
use std::borrow::Cow;

/// The JSON of the object in a response body; `None` when the body is not an object.
pub(super) fn json_of<'a>(headers: &HeaderMap, body: &'a [u8]) -> Option<Cow<'a, [u8]>> {
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok())?;
    match content_type.split(';').next().unwrap_or_default().trim() {
        "application/json" => Some(Cow::Borrowed(body)),
        "application/yaml" => yaml::own_to_json(body).ok().map(|converted| Cow::Owned(converted.json)),
        "application/vnd.kubernetes.protobuf" => {
            let message = protobuf::open(body).ok()?;
            let version = GroupVersion::parse(&message.api_version)?;
            let schema = Schema::builtin().by_kind(&version.group, &version.version, &message.kind)?;
            let decoded = protobuf::decode(body, schema).ok()?;
            Some(Cow::Owned(json::encode(&decoded.value, schema)))
        }
        _ => None,
    }
}
