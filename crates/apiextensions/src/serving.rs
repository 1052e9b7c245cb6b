//! Serves custom resources while their definitions are created, change and are deleted.

use crate::{
    conversion::Webhooks,
    definition_view::Definition,
    informer::{Change, Handler},
    resource::{Source, declare},
};
use parking_lot::Mutex;
use pintle_apiserver::registry::{CustomResource, StorageFactory, Stores};
use pintle_machinery::GroupResource;
use pintle_supervisor::Supervisor;
use std::{collections::HashMap, sync::Arc};

/// Keeps the served resources in line with the definitions.
pub(crate) struct Serving {
    pub(crate) stores: Arc<Stores>,
    pub(crate) storage: Arc<StorageFactory>,
    pub(crate) supervisor: Supervisor,
    webhooks: Webhooks,
    served: Mutex<HashMap<String, Served>>,
}

/// The served resources of one definition, and the state they were built from.
struct Served {
    definition: Arc<Definition>,
    resource: GroupResource,
    source: Source,
}

impl Served {
    /// Whether the definition still has the content that the resources were built from.
    ///
    /// A terminating definition counts as changed: its watches then receive the deletion of its objects.
    fn is_current(&self, definition: &Definition) -> bool {
        let own = &self.definition;
        own.metadata.uid == definition.metadata.uid
            && own.status.accepted_names == definition.status.accepted_names
            && own.has_spec_of(definition)
    }
}

impl Serving {
    pub(crate) fn new(
        stores: Arc<Stores>,
        storage: Arc<StorageFactory>,
        supervisor: Supervisor,
        webhooks: Webhooks,
    ) -> Serving {
        Serving { stores, storage, supervisor, webhooks, served: Mutex::default() }
    }

    fn serve(&self, definition: &Arc<Definition>) {
        let mut all = self.served.lock();
        let name = &definition.metadata.name;
        if let Some(served) = all.get_mut(name).filter(|served| served.is_current(definition)) {
            served.definition = definition.clone();
            self.stores.set_terminating(&served.resource, definition.is_true("Terminating"));
            served.source.store(definition.object().clone());
            return;
        }
        let declared = declare(definition, &self.webhooks);
        let is_served =
            |version: &str| definition.spec.versions.iter().any(|own| own.name == version && own.served);
        let custom = CustomResource::start(
            declared.versions,
            |resource| is_served(&resource.resource.version),
            declared.terminating,
            &self.storage,
            &self.supervisor,
        );
        let custom = match custom {
            Ok(custom) => custom,
            Err(error) => {
                tracing::error!(%name, %error, "a definition cannot be served");
                return;
            }
        };
        let resource = custom.store().group_resource().clone();
        let served =
            Served { definition: definition.clone(), resource: resource.clone(), source: declared.source };
        let before = all.insert(name.clone(), served);
        if let Some(before) = before.filter(|before| before.resource != resource) {
            self.stores.remove_custom(&before.resource);
        }
        self.stores.serve_custom(custom);
    }

    fn remove(&self, name: &str) {
        if let Some(served) = self.served.lock().remove(name) {
            self.stores.remove_custom(&served.resource);
        }
    }
}

impl Handler for Serving {
    fn changed(&self, change: &Change) {
        match &change.now {
            Some(now) if now.is_true("NamesAccepted") || now.is_true("Established") => self.serve(now),
            _ => self.remove(change.name()),
        }
    }
}
