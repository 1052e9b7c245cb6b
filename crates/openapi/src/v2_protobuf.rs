//! Encodes OpenAPI 2 in protobuf: the messages of gnostic's `openapi.v2` package, filled from the JSON form.
//!
//! Supports only the members that this crate writes. Members whose name starts with `x-` are extensions, encoded as
//! YAML text, of which JSON is a subset.

use crate::{protobuf::Message, v2};
use pintle_machinery::{Map, Value, ValueExt};
use std::convert::Infallible;

/// Encodes the document.
pub(crate) fn encode(source: &v2::Source<'_>) -> Vec<u8> {
    let mut message = Message::default();
    let head: Map = source.head().into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let head = Value::Object(head);
    let mut info = Message::default();
    info.texts_of(head.field("info").unwrap_or(&Value::Null), &[(1, "title"), (2, "version")]);
    message.text(1, head.str_at("swagger"));
    message.message(2, &info);
    message.message(8, &paths(source.paths()));
    message.message(9, &definitions(source));
    for requirement in head.items_at("security") {
        let mut ways = Message::default();
        for (name, _) in requirement.as_object().into_iter().flatten() {
            ways.named(1, name, &Message::default());
        }
        message.message(12, &ways);
    }
    let mut authentication = Message::default();
    for (name, way) in head.map_at("securityDefinitions") {
        let mut api_key = Message::default();
        api_key.texts_of(way, &[(1, "type"), (2, "name"), (3, "in"), (4, "description")]);
        let mut item = Message::default();
        item.message(2, &api_key);
        authentication.named(1, name, &item);
    }
    message.message(13, &authentication);
    message.0
}

/// Encodes further paths and definitions to append to the document: a protobuf reader merges repeated messages.
pub(crate) fn encode_more<'a>(
    items: impl Iterator<Item = (&'a str, Value)>,
    definitions: impl Iterator<Item = (&'a String, &'a Value)>,
) -> Vec<u8> {
    let mut more = Message::default();
    more.message(8, &paths(items));
    let mut inner = Message::default();
    for (name, definition) in definitions {
        inner.named(1, name, &schema(definition));
    }
    more.message(9, &inner);
    more.0
}

fn paths<'a>(items: impl Iterator<Item = (&'a str, Value)>) -> Message {
    let mut paths = Message::default();
    for (path, item) in items {
        paths.named(2, path, &path_item(&item));
    }
    paths
}

fn definitions(source: &v2::Source<'_>) -> Message {
    let mut definitions = Message::default();
    let Ok(()) = source.visit_definitions(|name, definition| {
        definitions.named(1, name, &schema(definition));
        Ok::<(), Infallible>(())
    });
    definitions
}

fn path_item(item: &Value) -> Message {
    const METHODS: [(u32, &str); 7] =
        [(2, "get"), (3, "put"), (4, "post"), (5, "delete"), (6, "options"), (7, "head"), (8, "patch")];
    let mut message = Message::default();
    for (number, method) in METHODS {
        if let Some(written) = item.field(method) {
            message.message(number, &operation(written));
        }
    }
    for written in item.items_at("parameters") {
        message.message(9, &parameter(written));
    }
    message
}

fn operation(operation: &Value) -> Message {
    let mut message = Message::default();
    message.list_of(operation, 1, "tags");
    message.texts_of(operation, &[(3, "description"), (5, "operationId")]);
    message.list_of(operation, 6, "produces");
    message.list_of(operation, 7, "consumes");
    for written in operation.items_at("parameters") {
        message.message(8, &parameter(written));
    }
    let mut responses = Message::default();
    for (code, written) in operation.map_at("responses") {
        let mut response = Message::default();
        response.text(1, written.str_at("description"));
        if let Some(answer) = written.field("schema") {
            let mut item = Message::default();
            item.message(1, &schema(answer));
            response.message(2, &item);
        }
        let mut value = Message::default();
        value.message(1, &response);
        responses.named(1, code, &value);
    }
    message.message(9, &responses);
    message.list_of(operation, 10, "schemes");
    message.extensions(operation, 13);
    message
}

/// Encodes a parameter, wrapped as an item and by its location.
fn parameter(parameter: &Value) -> Message {
    let mut outer = Message::default();
    if parameter.str_at("in") == "body" {
        let mut body = Message::default();
        body.texts_of(parameter, &[(1, "description"), (2, "name"), (3, "in")]);
        body.boolean(4, parameter.bool_at("required"));
        if let Some(carried) = parameter.field("schema") {
            body.message(5, &schema(carried));
        }
        outer.message(1, &body);
    } else {
        let in_path = parameter.str_at("in") == "path";
        let mut place = Message::default();
        place.boolean(1, parameter.bool_at("required"));
        place.texts_of(parameter, &[(2, "in"), (3, "description"), (4, "name")]);
        // Query parameters have one additional field, which shifts the numbers of the later ones.
        let shift = u32::from(!in_path);
        place.text(5 + shift, parameter.str_at("type"));
        place.boolean(19 + shift, parameter.bool_at("uniqueItems"));
        let mut kind = Message::default();
        kind.message(if in_path { 4 } else { 3 }, &place);
        outer.message(2, &kind);
    }
    let mut item = Message::default();
    item.message(1, &outer);
    item
}

fn schema(value: &Value) -> Message {
    let mut message = Message::default();
    message.texts_of(value, &[(1, "$ref"), (2, "format"), (3, "title"), (4, "description")]);
    message.limits(value, 6);
    message.list_of(value, 19, "required");
    message.anys_of(value, 20, "enum");
    match value.field("additionalProperties") {
        Some(Value::Bool(allowed)) => message.boolean_within(21, 2, *allowed),
        Some(values) => message.within(21, 1, &schema(values)),
        None => {}
    }
    if let Some(json_type) = value.field("type").and_then(Value::as_str) {
        let mut item = Message::default();
        item.text(1, json_type);
        message.message(22, &item);
    }
    if let Some(items) = value.field("items") {
        message.within(23, 1, &schema(items));
    }
    if let Some(properties) = value.field("properties").and_then(Value::as_object) {
        let mut inner = Message::default();
        for (name, property) in properties {
            inner.named(1, name, &schema(property));
        }
        message.message(25, &inner);
    }
    message.external_docs(value, 29);
    message.any_of(value, 30, "example");
    message.extensions(value, 31);
    message
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_schema_is_written_by_the_numbers_of_the_message() {
        let bytes = schema(&json!({
            "type": "object",
            "required": ["a"],
            "properties": {"a": {"$ref": "#/definitions/A", "description": "d"}},
            "x-kubernetes-map-type": "atomic",
        }));
        let mut expected = vec![0x9a, 0x01, 1, b'a'];
        expected.extend([0xb2, 0x01, 8, 0x0a, 6]);
        expected.extend(b"object");
        let property = [&[0x0a, 15][..], b"#/definitions/A", &[0x22, 1, b'd']].concat();
        let entry = [&[0x0a, 1, b'a', 0x12, property.len() as u8][..], &property].concat();
        let properties = [&[0x0a, entry.len() as u8][..], &entry].concat();
        expected.extend([0xca, 0x01, properties.len() as u8]);
        expected.extend(properties);
        let value = [&[0x12, 8][..], b"\"atomic\""].concat();
        let extension =
            [&[0x0a, 21][..], b"x-kubernetes-map-type", &[0x12, value.len() as u8], &value].concat();
        expected.extend([0xfa, 0x01, extension.len() as u8]);
        expected.extend(extension);
        assert_eq!(bytes.0, expected);
    }
}
