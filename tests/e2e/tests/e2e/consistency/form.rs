//! The forms of responses: they show an object, or its metadata alone, each of them also as the row of a table. Those of
//! built-in kinds may be protobuf.

use super::{
    random::Random,
    resource::{Resource, content},
};
use crate::Result;
use pintle_harness::Response;
use pintle_machinery::codec::protobuf;
use pintle_schema::Schema;
use serde_json::{Value, json};

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Form {
    is_table: bool,
    pub(super) is_protobuf: bool,
    /// Whether the whole object is shown.
    pub(super) is_whole: bool,
}

impl Form {
    pub(super) const PLAIN: Form = Form { is_table: false, is_protobuf: false, is_whole: true };

    /// A form in JSON.
    pub(super) fn random(random: &mut Random) -> Form {
        Form { is_table: random.chance(30), is_protobuf: false, is_whole: random.chance(70) }
    }

    /// A form that responses with objects of the resource have.
    pub(super) fn random_of(random: &mut Random, resource: Resource) -> Form {
        let form = Form::random(random);
        let has_protobuf = resource == Resource::ConfigMaps && !form.is_table;
        Form { is_protobuf: has_protobuf && random.chance(40), ..form }
    }

    /// The media type of a response with an object, an event or, with `List` as suffix, a list.
    pub(super) fn media_type(self, suffix: &str) -> String {
        let encoding = if self.is_protobuf { PROTOBUF } else { "application/json" };
        let kind = match (self.is_table, self.is_whole) {
            (true, _) => "Table",
            (false, true) => return encoding.to_owned(),
            (false, false) => &format!("PartialObjectMetadata{suffix}"),
        };
        format!("{encoding};as={kind};v=v1;g=meta.k8s.io")
    }

    /// The parameter of a request that asks for this form.
    pub(super) fn query(self) -> &'static str {
        match self {
            Form { is_table: true, is_whole: true, .. } => "includeObject=Object",
            _ => "includeObject=Metadata",
        }
    }

    /// The objects of a list, or the one object.
    pub(super) fn objects(self, response: &mut Value) -> Vec<Value> {
        let items = if self.is_table { "rows" } else { "items" };
        let Some(items) = response.get_mut(items) else { return vec![response.take()] };
        // A table without rows may have null.
        let items = items.as_array_mut().into_iter().flat_map(|items| items.drain(..));
        items.map(|mut item| if self.is_table { item["object"].take() } else { item }).collect()
    }

    /// The part of an object that this form shows.
    pub(super) fn part(self, object: Value) -> Value {
        match self.is_whole {
            true => content(object),
            false => json!({"metadata": object["metadata"]}),
        }
    }
}

/// The JSON of a response, which may be protobuf.
pub(super) fn read(response: &Response) -> Result<Value> {
    let content_type = response.header("content-type").unwrap_or_default();
    if !content_type.starts_with(PROTOBUF) {
        return response.json();
    }
    let envelope = protobuf::open(&response.body).map_err(|error| error.to_string())?;
    let (group, version) =
        envelope.api_version.split_once('/').unwrap_or(("", envelope.api_version.as_str()));
    let schema = Schema::builtin().by_kind(group, version, &envelope.kind).ok_or("an unknown kind")?;
    let decoded = protobuf::decode(&response.body, schema).map_err(|error| error.to_string())?;
    let mut object: Value = serde_json::from_str(&decoded.value.to_string())?;
    // Protobuf has no empty lists.
    if envelope.kind.ends_with("List") && object["items"].is_null() {
        object["items"] = json!([]);
    }
    match object.get_mut("items").and_then(Value::as_array_mut) {
        Some(items) => items.iter_mut().try_for_each(parse_fields)?,
        None => parse_fields(&mut object)?,
    }
    Ok(object)
}

/// Protobuf has the sets of managed fields as text.
fn parse_fields(object: &mut Value) -> Result {
    let entries = object.pointer_mut("/metadata/managedFields").and_then(Value::as_array_mut);
    for entry in entries.into_iter().flatten() {
        if let Some(text) = entry["fieldsV1"].as_str() {
            let fields: Value = serde_json::from_str(text)?;
            entry["fieldsV1"] = fields;
        }
    }
    Ok(())
}
