//! Publishes the schemas of established definitions to OpenAPI.
//!
//! Nothing is computed or kept in advance. The list of documents and their state come from the informer; the schemas
//! are read from the cached definitions when a document is requested.

use crate::{definition_view::Definition, informer::Definitions, structural::StructuralSchema};
use pintle_machinery::{Value, ValueExt, codec::json};
use pintle_openapi::{CustomDefinitions, PublishedDefinition};
use std::sync::Arc;

impl CustomDefinitions for Definitions {
    fn published(&self) -> Vec<PublishedDefinition> {
        let mut published: Vec<PublishedDefinition> = self
            .all()
            .iter()
            .filter(|definition| is_published(definition))
            .map(|definition| of(definition))
            .collect();
        published.sort_by(|one, other| one.name.cmp(&other.name));
        published
    }

    fn definition(&self, name: &str) -> Option<Value> {
        let definition = self.get(name).filter(is_published)?;
        let mut tree = json::decode_any(&definition.object().json()).ok()?;
        // Older servers stored schemas that are not structural.
        for version in tree.items_at_mut("spec.versions") {
            let schema = version.at("schema.openAPIV3Schema");
            if schema.is_some_and(|schema| StructuralSchema::new(schema).is_err()) {
                version.remove_at("schema");
            }
        }
        Some(tree)
    }
}

fn is_published(definition: &Arc<Definition>) -> bool {
    definition.is_true("Established")
}

fn of(definition: &Definition) -> PublishedDefinition {
    let served = definition.spec.versions.iter().filter(|version| version.served);
    PublishedDefinition::new(
        &definition.metadata.name,
        &definition.metadata.uid,
        definition.metadata.generation,
        &definition.spec.group,
        served.map(|version| version.name.as_str()),
    )
}
