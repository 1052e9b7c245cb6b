//! Encodes OpenAPI 3 in protobuf: the messages of gnostic's `openapi.v3` package, filled from the JSON form.
//!
//! Supports only the members that this crate writes. Most values are wrapped twice: in a named entry, and in an
//! alternative to a reference.

use crate::{protobuf::Message, v3};
use pintle_machinery::{Value, ValueExt};
use std::convert::Infallible;

/// Encodes the document.
pub(crate) fn encode(source: &v3::Source<'_>) -> Vec<u8> {
    let mut message = head(&source.info(), source.paths());
    let mut schemas = Message::default();
    let Ok(()) = source.visit_definitions(|name, definition| {
        schemas.named(1, name, &schema_or_reference(definition));
        Ok::<(), Infallible>(())
    });
    let mut schemes = Message::default();
    for (name, scheme) in source.security_schemes().as_object().into_iter().flatten() {
        let mut way = Message::default();
        way.texts_of(scheme, &[(1, "type"), (2, "description"), (3, "name"), (4, "in")]);
        let mut item = Message::default();
        item.message(1, &way);
        schemes.named(1, name, &item);
    }
    let mut components = Message::default();
    components.message(1, &schemas);
    components.message(7, &schemes);
    message.message(5, &components);
    message.0
}

/// Encodes the members before the definitions.
pub(crate) fn head<'a>(info: &Value, items: impl Iterator<Item = (&'a str, Value)>) -> Message {
    let mut written = Message::default();
    written.texts_of(info, &[(1, "title"), (6, "version")]);
    let mut paths = Message::default();
    for (path, item) in items {
        paths.named(1, path, &path_item(&item));
    }
    let mut message = Message::default();
    message.text(1, v3::VERSION);
    message.message(2, &written);
    message.message(4, &paths);
    message
}

/// Appends some of the definitions. A protobuf reader merges repeated messages.
pub(crate) fn some_definitions(message: &mut Message, definitions: &[(String, Value)]) {
    let mut schemas = Message::default();
    for (name, definition) in definitions {
        schemas.named(1, name, &schema_or_reference(definition));
    }
    message.within(5, 1, &schemas);
}

fn path_item(item: &Value) -> Message {
    const METHODS: [(u32, &str); 7] =
        [(4, "get"), (5, "put"), (6, "post"), (7, "delete"), (8, "options"), (9, "head"), (10, "patch")];
    let mut message = Message::default();
    for (number, method) in METHODS {
        if let Some(written) = item.field(method) {
            message.message(number, &operation(written));
        }
    }
    for written in item.items_at("parameters") {
        message.within(13, 1, &parameter(written));
    }
    message
}

fn operation(operation: &Value) -> Message {
    let mut message = Message::default();
    message.list_of(operation, 1, "tags");
    message.texts_of(operation, &[(3, "description"), (5, "operationId")]);
    for written in operation.items_at("parameters") {
        message.within(6, 1, &parameter(written));
    }
    if let Some(body) = operation.field("requestBody") {
        let mut request = Message::default();
        request.message(2, &content(body));
        request.boolean(3, body.bool_at("required"));
        message.within(7, 1, &request);
    }
    let mut responses = Message::default();
    for (code, written) in operation.map_at("responses") {
        let mut response = Message::default();
        response.text(1, written.str_at("description"));
        if written.field("content").is_some() {
            response.message(3, &content(written));
        }
        let mut item = Message::default();
        item.message(1, &response);
        responses.named(2, code, &item);
    }
    message.message(8, &responses);
    message.extensions(operation, 13);
    message
}

/// The media types of a body.
fn content(body: &Value) -> Message {
    let mut types = Message::default();
    for (media, written) in body.map_at("content") {
        let mut media_type = Message::default();
        if let Some(carried) = written.field("schema") {
            media_type.message(1, &schema_or_reference(carried));
        }
        types.named(1, media, &media_type);
    }
    types
}

fn parameter(parameter: &Value) -> Message {
    let mut message = Message::default();
    message.texts_of(parameter, &[(1, "name"), (2, "in"), (3, "description")]);
    message.boolean(4, parameter.bool_at("required"));
    if let Some(carried) = parameter.field("schema") {
        message.message(10, &schema_or_reference(carried));
    }
    message
}

fn schema_or_reference(value: &Value) -> Message {
    let mut message = Message::default();
    match value.field("$ref").and_then(Value::as_str) {
        Some(reference) => {
            let mut inner = Message::default();
            inner.text(1, reference);
            message.message(2, &inner);
        }
        None => message.message(1, &schema(value)),
    }
    message
}

fn schema(value: &Value) -> Message {
    let mut message = Message::default();
    message.boolean(1, value.bool_at("nullable"));
    message.external_docs(value, 6);
    message.any_of(value, 7, "example");
    message.texts_of(value, &[(9, "title")]);
    message.limits(value, 10);
    message.list_of(value, 23, "required");
    message.anys_of(value, 24, "enum");
    message.texts_of(value, &[(25, "type")]);
    for (number, member) in [(26, "allOf"), (27, "oneOf"), (28, "anyOf")] {
        for item in value.items_at(member) {
            message.message(number, &schema_or_reference(item));
        }
    }
    if let Some(not) = value.field("not") {
        message.message(29, &schema(not));
    }
    if let Some(items) = value.field("items") {
        message.within(30, 1, &schema_or_reference(items));
    }
    if let Some(properties) = value.field("properties").and_then(Value::as_object) {
        let mut inner = Message::default();
        for (name, property) in properties {
            inner.named(1, name, &schema_or_reference(property));
        }
        message.message(31, &inner);
    }
    match value.field("additionalProperties") {
        Some(Value::Bool(allowed)) => message.boolean_within(32, 2, *allowed),
        Some(values) => message.within(32, 1, &schema_or_reference(values)),
        None => {}
    }
    if let Some(default) = value.field("default") {
        // The message cannot represent an object as default.
        let mut inner = Message::default();
        match default {
            Value::Number(number) => inner.double(1, number.as_f64().unwrap_or_default()),
            Value::Bool(value) => inner.boolean_always(2, *value),
            Value::String(text) => inner.bytes(3, text.as_bytes()),
            Value::Null | Value::Array(_) | Value::Object(_) => {}
        }
        if !inner.0.is_empty() {
            message.message(33, &inner);
        }
    }
    message.texts_of(value, &[(34, "description"), (35, "format")]);
    message.extensions(value, 36);
    message
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    #[test]
    fn a_field_is_written_by_the_numbers_of_the_message() {
        let bytes = schema(&json!({
            "allOf": [{"$ref": "#/A"}],
            "default": {},
            "description": "d",
        }));
        let expected = [&[0xd2, 0x01, 7, 0x12, 5, 0x0a, 3][..], b"#/A", &[0x92, 0x02, 1, b'd']].concat();
        assert_eq!(bytes.0, expected);
        let bytes = schema(&json!({"type": "boolean", "default": false}));
        let expected = [&[0xca, 0x01, 7][..], b"boolean", &[0x8a, 0x02, 2, 0x10, 0]].concat();
        assert_eq!(bytes.0, expected);
    }
}
