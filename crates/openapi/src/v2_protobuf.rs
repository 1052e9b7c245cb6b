//! Encodes OpenAPI 2 in protobuf: the messages of gnostic's `openapi.v2` package, filled from the JSON form.
//!
//! Members that the messages lack are left out. Members whose name starts with `x-` are extensions, encoded as
//! YAML text.

use crate::{protobuf::Message, remote::RemoteDocument, v2};
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

/// Encodes a document of another server to append to the document, as [`encode_more`].
pub(crate) fn encode_remote(document: &RemoteDocument) -> Vec<u8> {
    let mut more = Message::default();
    let mut inner = Message::default();
    document.paths.iter().for_each(|(path, item)| inner.named(2, path, &path_item(item)));
    more.message(8, &inner);
    let mut inner = Message::default();
    document.definitions.iter().for_each(|(name, definition)| inner.named(1, name, &schema(definition)));
    more.message(9, &inner);
    if !document.parameters.is_empty() {
        let mut inner = Message::default();
        document.parameters.iter().for_each(|(name, own)| inner.named(1, name, &parameter(own)));
        more.message(10, &inner);
    }
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
    message.texts_of(item, &[(1, "$ref")]);
    for (number, method) in METHODS {
        if let Some(written) = item.field(method) {
            message.message(number, &operation(written));
        }
    }
    for written in item.items_at("parameters") {
        message.message(9, &parameter_item(written));
    }
    message.extensions(item, 10);
    message
}

fn operation(operation: &Value) -> Message {
    let mut message = Message::default();
    message.list_of(operation, 1, "tags");
    message.texts_of(operation, &[(2, "summary"), (3, "description")]);
    message.external_docs(operation, 4);
    message.texts_of(operation, &[(5, "operationId")]);
    message.list_of(operation, 6, "produces");
    message.list_of(operation, 7, "consumes");
    for written in operation.items_at("parameters") {
        message.message(8, &parameter_item(written));
    }
    let mut responses = Message::default();
    for (code, written) in operation.map_at("responses").iter().filter(|(code, _)| !code.starts_with("x-")) {
        let mut value = Message::default();
        match written.field("$ref") {
            Some(_) => value.message(2, &reference(written)),
            None => value.message(1, &response(written)),
        }
        responses.named(1, code, &value);
    }
    if let Some(written) = operation.field("responses") {
        responses.extensions(written, 2);
    }
    message.message(9, &responses);
    message.list_of(operation, 10, "schemes");
    message.boolean(11, operation.bool_at("deprecated"));
    for requirement in operation.items_at("security") {
        let mut ways = Message::default();
        for (name, _) in requirement.as_object().into_iter().flatten() {
            let mut scopes = Message::default();
            scopes.list_of(requirement, 1, name);
            ways.named(1, name, &scopes);
        }
        message.message(12, &ways);
    }
    message.extensions(operation, 13);
    message
}

/// Encodes a reference to a parameter or a response.
fn reference(value: &Value) -> Message {
    let mut message = Message::default();
    message.texts_of(value, &[(1, "$ref"), (2, "description")]);
    message
}

fn response(response: &Value) -> Message {
    let mut message = Message::default();
    message.text(1, response.str_at("description"));
    if let Some(answer) = response.field("schema") {
        let mut item = Message::default();
        match answer.str_at("type") {
            "file" => item.message(2, &file_schema(answer)),
            _ => item.message(1, &schema(answer)),
        }
        message.message(2, &item);
    }
    if let Some(headers) = response.field("headers").and_then(Value::as_object) {
        let mut inner = Message::default();
        for (name, header) in headers {
            let mut value = Message::default();
            simple(&mut value, header, 1);
            value.texts_of(header, &[(18, "description")]);
            value.extensions(header, 19);
            inner.named(1, name, &value);
        }
        message.message(3, &inner);
    }
    if let Some(examples) = response.field("examples").and_then(Value::as_object) {
        let mut inner = Message::default();
        examples.iter().for_each(|(name, example)| inner.named_any(1, name, example));
        message.message(4, &inner);
    }
    message.extensions(response, 5);
    message
}

/// Encodes a parameter of an operation, or a reference to one.
fn parameter_item(written: &Value) -> Message {
    let mut item = Message::default();
    match written.field("$ref") {
        Some(_) => item.message(2, &reference(written)),
        None => item.message(1, &parameter(written)),
    }
    item
}

/// Encodes a parameter, wrapped by its location.
fn parameter(parameter: &Value) -> Message {
    let mut outer = Message::default();
    if parameter.str_at("in") == "body" {
        let mut body = Message::default();
        body.texts_of(parameter, &[(1, "description"), (2, "name"), (3, "in")]);
        body.boolean(4, parameter.bool_at("required"));
        if let Some(carried) = parameter.field("schema") {
            body.message(5, &schema(carried));
        }
        body.extensions(parameter, 6);
        outer.message(1, &body);
        return outer;
    }
    // Parameters of queries and forms have one additional field, which shifts the numbers of the later ones.
    let (number, shift) = match parameter.str_at("in") {
        "header" => (1, 0),
        "formData" => (2, 1),
        "path" => (4, 0),
        _ => (3, 1),
    };
    let mut place = Message::default();
    place.boolean(1, parameter.bool_at("required"));
    place.texts_of(parameter, &[(2, "in"), (3, "description"), (4, "name")]);
    if shift == 1 {
        place.boolean(5, parameter.bool_at("allowEmptyValue"));
    }
    simple(&mut place, parameter, 5 + shift);
    place.extensions(parameter, 22 + shift);
    let mut kind = Message::default();
    kind.message(number, &place);
    outer.message(2, &kind);
    outer
}

/// Writes the type of a parameter, a header or their items, and its limits, which have the same order everywhere.
fn simple(message: &mut Message, value: &Value, first: u32) {
    const LIMITS: [&str; 10] = [
        "maximum",
        "exclusiveMaximum",
        "minimum",
        "exclusiveMinimum",
        "maxLength",
        "minLength",
        "pattern",
        "maxItems",
        "minItems",
        "uniqueItems",
    ];
    message.texts_of(value, &[(first, "type"), (first + 1, "format")]);
    if let Some(items) = value.field("items") {
        let mut inner = Message::default();
        simple(&mut inner, items, 1);
        inner.extensions(items, 18);
        message.message(first + 2, &inner);
    }
    message.texts_of(value, &[(first + 3, "collectionFormat")]);
    message.any_of(value, first + 4, "default");
    for (number, member) in (first + 5..).zip(LIMITS) {
        message.limit(value, number, member);
    }
    message.anys_of(value, first + 15, "enum");
    message.limit(value, first + 16, "multipleOf");
}

/// Encodes the schema of a response that is a file.
fn file_schema(value: &Value) -> Message {
    let mut message = Message::default();
    message.texts_of(value, &[(1, "format"), (2, "title"), (3, "description")]);
    message.any_of(value, 4, "default");
    message.list_of(value, 5, "required");
    message.texts_of(value, &[(6, "type")]);
    message.boolean(7, value.bool_at("readOnly"));
    message.external_docs(value, 8);
    message.any_of(value, 9, "example");
    message.extensions(value, 10);
    message
}

/// Encodes a schema. Members that the message lacks (`oneOf`, `anyOf`, `not`, …) are left out.
fn schema(value: &Value) -> Message {
    let mut message = Message::default();
    message.texts_of(value, &[(1, "$ref"), (2, "format"), (3, "title"), (4, "description")]);
    message.any_of(value, 5, "default");
    message.limits(value, 6);
    message.list_of(value, 19, "required");
    message.anys_of(value, 20, "enum");
    match value.field("additionalProperties") {
        Some(Value::Bool(allowed)) => message.boolean_within(21, 2, *allowed),
        Some(values) => message.within(21, 1, &schema(values)),
        None => {}
    }
    match value.field("type") {
        Some(Value::String(json_type)) => {
            let mut item = Message::default();
            item.text(1, json_type);
            message.message(22, &item);
        }
        Some(Value::Array(_)) => {
            let mut item = Message::default();
            item.list_of(value, 1, "type");
            message.message(22, &item);
        }
        _ => {}
    }
    match value.field("items") {
        Some(Value::Array(several)) => {
            let mut items = Message::default();
            several.iter().for_each(|item| items.message(1, &schema(item)));
            message.message(23, &items);
        }
        Some(items) => message.within(23, 1, &schema(items)),
        None => {}
    }
    for part in value.items_at("allOf") {
        message.message(24, &schema(part));
    }
    if let Some(properties) = value.field("properties").and_then(Value::as_object) {
        let mut inner = Message::default();
        for (name, property) in properties {
            inner.named(1, name, &schema(property));
        }
        message.message(25, &inner);
    }
    message.texts_of(value, &[(26, "discriminator")]);
    message.boolean(27, value.bool_at("readOnly"));
    message.external_docs(value, 29);
    message.any_of(value, 30, "example");
    message.extensions(value, 31);
    message
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

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
        let value = [&[0x12, 7][..], b"atomic\n"].concat();
        let extension =
            [&[0x0a, 21][..], b"x-kubernetes-map-type", &[0x12, value.len() as u8], &value].concat();
        expected.extend([0xfa, 0x01, extension.len() as u8]);
        expected.extend(extension);
        assert_eq!(bytes.0, expected);
    }
}
