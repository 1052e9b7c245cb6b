//! Builds the OpenAPI 2 document, which contains all paths.

use crate::{
    definitions::{Definitions, Dialect},
    descriptions::Descriptions,
    json::Members,
    operation::{Operation, Paths, Payload, common_parameters, meaning, own_parameters},
    parameters::Parameter,
    remote::with_kinds,
};
use pintle_machinery::{GroupVersion, Map, Value, json};
use std::{
    collections::BTreeMap,
    io::{self, Write},
};

/// The inputs of the document.
pub(crate) struct Source<'a> {
    pub(crate) documents: &'a [&'a Paths],
    /// The API versions that the paths belong to.
    pub(crate) versions: &'a [GroupVersion],
    pub(crate) server_version: &'a str,
    pub(crate) descriptions: &'a Descriptions,
    /// The group-version-kinds that are added to definitions, by the name of the definition.
    pub(crate) kinds: &'a BTreeMap<String, Vec<Value>>,
}

impl Source<'_> {
    /// All members except paths and definitions.
    pub(crate) fn head(&self) -> [(&'static str, Value); 4] {
        [
            ("swagger", json!("2.0")),
            ("info", json!({"title": "Kubernetes", "version": self.server_version})),
            ("securityDefinitions", json!({"BearerToken": crate::security::bearer_token()})),
            ("security", json!([{"BearerToken": []}])),
        ]
    }

    /// The paths with their operations.
    pub(crate) fn paths(&self) -> impl Iterator<Item = (&str, Value)> {
        let paths = self.documents.iter().flat_map(|paths| paths.iter());
        paths.map(|(path, operations)| (path.as_str(), path_item(operations)))
    }

    /// Visits the definitions that the operations refer to.
    ///
    /// # Errors
    /// The first error of `visit`, which ends the visits.
    pub(crate) fn visit_definitions<E>(
        &self,
        mut visit: impl FnMut(&str, &Value) -> Result<(), E>,
    ) -> Result<(), E> {
        let definitions =
            Definitions { dialect: Dialect::V2, descriptions: self.descriptions, versions: self.versions };
        let items = self.documents.iter().flat_map(|paths| paths.values());
        let used = items.flat_map(BTreeMap::values).flat_map(Operation::definitions);
        definitions.visit(used, |name, definition| match self.kinds.get(name) {
            None => visit(name, definition),
            Some(kinds) => {
                let mut definition = definition.clone();
                with_kinds(&mut definition, kinds);
                visit(name, &definition)
            }
        })
    }

    /// Writes the JSON of the document up to the last path; more paths may follow.
    ///
    /// # Errors
    /// Those of the writer.
    pub(crate) fn write_paths(&self, out: &mut impl Write) -> io::Result<()> {
        let mut document = Members::start(out)?;
        for (name, value) in self.head() {
            document.member(name, &value)?;
        }
        let mut paths = document.object("paths")?;
        for (path, item) in self.paths() {
            paths.member(path, &item)?;
        }
        Ok(())
    }

    /// Writes the JSON from the end of the paths up to the last definition; more definitions may follow.
    ///
    /// # Errors
    /// Those of the writer.
    pub(crate) fn write_definitions(&self, out: &mut impl Write) -> io::Result<()> {
        out.write_all(b"}")?;
        let mut document = Members::resume(out);
        let mut definitions = document.object("definitions")?;
        self.visit_definitions(|name, definition| definitions.member(name, definition))
    }
}

/// The JSON after the definitions.
pub(crate) const END: &[u8] = b"}}";

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

fn operation(operation: &Operation, common: &[Parameter]) -> Value {
    let mut parameters: Vec<Value> = own_parameters(operation, common).iter().map(parameter).collect();
    if let Some(body) = &operation.body {
        let mut value = Map::new();
        value.insert("name", json!("body"));
        value.insert("in", json!("body"));
        if body.required {
            value.insert("required", json!(true));
        }
        value.insert("schema", Dialect::V2.reference_to(&body.definition));
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
    responses.insert("401", json!({"description": meaning(401)}));
    let mut value = Map::new();
    value.insert("tags", json!([operation.tag]));
    value.insert("description", json!(operation.description));
    value.insert("operationId", json!(operation.id));
    value.insert("schemes", json!(["https"]));
    if !operation.consumes.is_empty() {
        value.insert("consumes", json!(operation.consumes));
    }
    value.insert("produces", json!(operation.media));
    if !parameters.is_empty() {
        value.insert("parameters", parameters.into());
    }
    value.insert("responses", responses.into());
    crate::operation::add_extensions(operation, &mut value);
    value.into()
}

fn parameter(parameter: &Parameter) -> Value {
    let mut value = Map::new();
    value.insert("name", json!(parameter.name));
    value.insert("in", json!(if parameter.in_path { "path" } else { "query" }));
    value.insert("type", json!(parameter.json_type));
    value.insert("uniqueItems", json!(true));
    if !parameter.description.is_empty() {
        value.insert("description", json!(parameter.description));
    }
    if parameter.in_path {
        value.insert("required", json!(true));
    }
    value.into()
}
