//! Builds OpenAPI 3 documents.

use crate::{
    definitions::{Definitions, Dialect},
    descriptions::Descriptions,
    json::Members,
    operation::{Operation, Paths, Payload, common_parameters, meaning, own_parameters},
    parameters::Parameter,
};
use pintle_machinery::{GroupVersion, Map, Value, json};
use std::{
    collections::BTreeMap,
    io::{self, Write},
};

/// The OpenAPI version.
pub(crate) const VERSION: &str = "3.0.0";

/// The inputs of a document.
pub(crate) struct Source<'a> {
    pub(crate) paths: &'a Paths,
    /// The API version that the paths belong to.
    pub(crate) version: Option<&'a GroupVersion>,
    pub(crate) server_version: &'a str,
    pub(crate) descriptions: &'a Descriptions,
}

impl Source<'_> {
    /// The title and version of the document.
    pub(crate) fn info(&self) -> Value {
        info("Kubernetes", self.server_version)
    }

    /// The paths with their operations.
    pub(crate) fn paths(&self) -> impl Iterator<Item = (&str, Value)> {
        self.paths.iter().map(|(path, operations)| (path.as_str(), path_item(operations)))
    }

    /// Visits the definitions that the operations refer to.
    ///
    /// # Errors
    /// The first error of `visit`, which ends the visits.
    pub(crate) fn visit_definitions<E>(
        &self,
        visit: impl FnMut(&str, &Value) -> Result<(), E>,
    ) -> Result<(), E> {
        let versions = self.version.map(std::slice::from_ref).unwrap_or_default();
        let definitions = Definitions { dialect: Dialect::V3, descriptions: self.descriptions, versions };
        definitions.visit(self.needed(), visit)
    }

    /// The security schemes.
    pub(crate) fn security_schemes(&self) -> Value {
        json!({"BearerToken": crate::security::bearer_token()})
    }

    fn needed(&self) -> impl Iterator<Item = &str> {
        self.paths.values().flat_map(BTreeMap::values).flat_map(Operation::definitions)
    }

    /// Writes the document as JSON.
    ///
    /// # Errors
    /// Those of the writer.
    pub(crate) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let mut document = Members::start(out)?;
        document.member("openapi", &json!(VERSION))?;
        document.member("info", &self.info())?;
        let mut paths = document.object("paths")?;
        for (path, item) in self.paths() {
            paths.member(path, &item)?;
        }
        paths.end()?;
        let mut components = document.object("components")?;
        if self.needed().next().is_some() {
            let mut schemas = components.object("schemas")?;
            self.visit_definitions(|name, definition| schemas.member(name, definition))?;
            schemas.end()?;
        }
        components.member("securitySchemes", &self.security_schemes())?;
        components.end()?;
        document.end()
    }
}

pub(crate) fn path_item(operations: &BTreeMap<&'static str, Operation>) -> Value {
    let common = common_parameters(operations);
    let mut item: Map = operations
        .iter()
        .map(|(method, written)| ((*method).to_owned(), operation(written, &common)))
        .collect();
    if !common.is_empty() {
        item.insert("parameters", common.iter().map(parameter).collect());
    }
    item.into()
}

/// The title and version of a document.
pub(crate) fn info(title: &str, version: &str) -> Value {
    json!({"title": title, "version": version})
}

fn operation(operation: &Operation, common: &[Parameter]) -> Value {
    let mut value = Map::new();
    value.insert("tags", json!([operation.tag]));
    value.insert("description", json!(operation.description));
    value.insert("operationId", json!(operation.id));
    let own = own_parameters(operation, common);
    if !own.is_empty() {
        value.insert("parameters", own.iter().map(parameter).collect());
    }
    if let Some(body) = &operation.body {
        let schema = Dialect::V3.reference_to(&body.definition);
        let mut request = Map::from_iter([("content".to_owned(), content(body.media, &schema))]);
        if body.required {
            request.insert("required", json!(true));
        }
        value.insert("requestBody", request.into());
    }
    let schema = match &operation.answer {
        Payload::Definition(definition) => Dialect::V3.reference_to(definition),
        Payload::Text => json!({"type": "string"}),
    };
    let mut responses: Map = operation
        .codes
        .iter()
        .map(|code| {
            let response =
                json!({"description": meaning(*code), "content": content(operation.media, &schema)});
            (code.to_string(), response)
        })
        .collect();
    responses.insert("401", json!({"description": meaning(401)}));
    value.insert("responses", responses.into());
    crate::operation::add_extensions(operation, &mut value);
    value.into()
}

fn content(media: &[&str], schema: &Value) -> Value {
    media.iter().map(|media| ((*media).to_owned(), json!({"schema": schema}))).collect::<Map>().into()
}

fn parameter(parameter: &Parameter) -> Value {
    let mut value = Map::new();
    value.insert("name", json!(parameter.name));
    value.insert("in", json!(if parameter.in_path { "path" } else { "query" }));
    if !parameter.description.is_empty() {
        value.insert("description", json!(parameter.description));
    }
    if parameter.in_path {
        value.insert("required", json!(true));
    }
    value.insert("schema", json!({"type": parameter.json_type, "uniqueItems": true}));
    value.into()
}
