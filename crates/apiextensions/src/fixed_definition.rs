//! A definition that is given in code: the kind of an extension API server.

use crate::{
    conversion::{ConversionMetrics, Webhooks},
    definition_view::Definition,
    resource::declare,
};
use pintle_apiserver::registry::{CustomResource, DeclarationError, StorageFactory};
use pintle_cacher::{CachedObject, DecodedObject};
use pintle_dialer::{Outbound, ServiceResolver};
use pintle_machinery::{Value, ValueExt, json};
use pintle_openapi::{CustomDefinitions, PublishedDefinition};
use pintle_registry::BoxFuture;
use pintle_storage::{Key, Revision};
use pintle_supervisor::Supervisor;
use std::{future::ready, sync::Arc};

/// A definition that is given in code, and does not change. An extension API server that is written on this crate serves
/// its kinds by such definitions, with the same schemas, validation, columns and documents as custom resources.
pub struct FixedDefinition {
    tree: Value,
    definition: Arc<Definition>,
}

/// The reason why a [`FixedDefinition`] cannot be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FixedDefinitionError {
    /// The object is no definition.
    #[error("the object is no definition: {0}")]
    Malformed(String),
    /// No version is stored, or versions cannot be converted.
    #[error(transparent)]
    Declaration(#[from] DeclarationError),
    /// The metrics of conversions cannot be made.
    #[error(transparent)]
    Metrics(#[from] prometheus::Error),
}

impl FixedDefinition {
    /// A definition by its object of `apiextensions.k8s.io/v1`. Names that are left out are derived from the others. The
    /// schemas are trusted: they are validated for definitions of clients only.
    ///
    /// # Errors
    /// When the object is no definition.
    pub fn new(mut tree: Value) -> Result<FixedDefinition, FixedDefinitionError> {
        let kind = tree.str_at("spec.names.kind").to_owned();
        tree.set_default("spec.names.singular", kind.to_lowercase());
        tree.set_default("spec.names.listKind", format!("{kind}List"));
        let names = tree.at("spec.names").cloned().unwrap_or_default();
        tree.set("status.acceptedNames", names);
        tree.set("status.conditions", json!([{"type": "Established", "status": "True"}]));
        let name = tree.str_at("metadata.name");
        let decoded = DecodedObject {
            json: tree.to_string().into(),
            packed: None,
            namespace: "".into(),
            name: name.into(),
            selectable: Arc::default(),
        };
        let object = Arc::new(CachedObject::new(Key::new(format!("/{name}")), Revision(1), decoded));
        let definition = Definition::read(&object).map_err(FixedDefinitionError::Malformed)?;
        Ok(FixedDefinition { definition: Arc::new(definition), tree })
    }

    /// Starts the store of the resource, to be served by [`pintle_apiserver::registry::Stores::serve_custom`].
    ///
    /// # Errors
    /// When no version is stored.
    pub fn start(
        &self,
        storage: &Arc<StorageFactory>,
        supervisor: &Supervisor,
    ) -> Result<CustomResource, FixedDefinitionError> {
        let metrics = ConversionMetrics::new()?;
        let outbound = Outbound::direct(Arc::new(NoServices));
        let declared = declare(&self.definition, &Webhooks { outbound, metrics });
        let versions = &self.definition.spec.versions;
        let is_served = |version: &str| versions.iter().any(|own| own.name == version && own.served);
        let started = CustomResource::start(
            declared.versions,
            |resource| is_served(&resource.resource.version),
            declared.terminating,
            storage,
            supervisor,
        );
        Ok(started?)
    }
}

/// A server without services: versions of a fixed definition are not converted by webhooks.
struct NoServices;

impl ServiceResolver for NoServices {
    fn resolve<'a>(&'a self, _: &'a str, name: &'a str, _: u16) -> BoxFuture<'a, Result<String, String>> {
        Box::pin(ready(Err(format!("service \"{name}\" not found"))))
    }
}

impl CustomDefinitions for FixedDefinition {
    fn published(&self) -> Vec<PublishedDefinition> {
        vec![PublishedDefinition::of(&self.tree)]
    }

    fn definition(&self, name: &str) -> Option<Value> {
        (self.tree.str_at("metadata.name") == name).then(|| self.tree.clone())
    }
}
