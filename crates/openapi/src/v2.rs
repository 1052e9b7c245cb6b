//! The OpenAPI 2 document: all paths in one.

use crate::{
    definitions::{Definitions, Dialect},
    descriptions::Descriptions,
    operation::{Operation, PATCH_MEDIA, Paths, Payload, common_parameters, meaning, own_parameters},
    parameters::Parameter,
};
use pintle_machinery::{GroupVersion, Map, Value};
use serde_json::json;

/// The document of all paths. `versions` are the API versions that they belong to.
pub(crate) fn document(
    documents: &[&Paths],
    versions: &[GroupVersion],
    server_version: &str,
    descriptions: &Descriptions,
) -> Value {
    let definitions = Definitions { dialect: Dialect::V2, descriptions, versions };
    let operations = documents.iter().flat_map(|paths| paths.values()).flat_map(|item| item.values());
    let definitions = definitions.closure(operations.flat_map(Operation::definitions));
    let paths: Map = documents
        .iter()
        .flat_map(|paths| paths.iter())
        .map(|(path, operations)| {
            let common = common_parameters(operations);
            let mut item: Map = operations
                .iter()
                .map(|(method, written)| ((*method).to_owned(), operation(written, &common)))
                .collect();
            if !common.is_empty() {
                item.insert("parameters".to_owned(), common.iter().map(parameter).collect());
            }
            (path.clone(), item.into())
        })
        .collect();
    json!({
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": server_version},
        "paths": paths,
        "definitions": definitions,
        "securityDefinitions": {"BearerToken": crate::bearer_token()},
        "security": [{"BearerToken": []}],
    })
}

fn operation(operation: &Operation, common: &[Parameter]) -> Value {
    let consumes = match &operation.body {
        Some(body) if body.media == PATCH_MEDIA => PATCH_MEDIA,
        _ => &["*/*"],
    };
    let mut parameters: Vec<Value> = own_parameters(operation, common).iter().map(parameter).collect();
    if let Some(body) = &operation.body {
        let mut value = Map::new();
        value.insert("name".to_owned(), json!("body"));
        value.insert("in".to_owned(), json!("body"));
        if body.required {
            value.insert("required".to_owned(), json!(true));
        }
        value.insert("schema".to_owned(), Dialect::V2.reference_to(&body.definition));
        parameters.insert(0, value.into());
    }
    let schema = match &operation.answer {
        Payload::Definition(definition) => Dialect::V2.reference_to(definition),
        Payload::Text => json!({"type": "string"}),
    };
    let mut responses: Map = operation
        .codes
        .iter()
        .map(|code| (code.to_string(), json!({"description": meaning(*code), "schema": schema})))
        .collect();
    responses.insert("401".to_owned(), json!({"description": meaning(401)}));
    let mut value = Map::new();
    value.insert("tags".to_owned(), json!([operation.tag]));
    value.insert("description".to_owned(), json!(operation.description));
    value.insert("operationId".to_owned(), json!(operation.id));
    value.insert("schemes".to_owned(), json!(["https"]));
    value.insert("consumes".to_owned(), json!(consumes));
    value.insert("produces".to_owned(), json!(operation.media));
    if !parameters.is_empty() {
        value.insert("parameters".to_owned(), parameters.into());
    }
    value.insert("responses".to_owned(), responses.into());
    crate::add_extensions(operation, &mut value);
    value.into()
}

fn parameter(parameter: &Parameter) -> Value {
    let mut value = Map::new();
    value.insert("name".to_owned(), json!(parameter.name));
    value.insert("in".to_owned(), json!(if parameter.in_path { "path" } else { "query" }));
    value.insert("type".to_owned(), json!(parameter.json_type));
    value.insert("uniqueItems".to_owned(), json!(true));
    if !parameter.description.is_empty() {
        value.insert("description".to_owned(), json!(parameter.description));
    }
    if parameter.in_path {
        value.insert("required".to_owned(), json!(true));
    }
    value.into()
}
