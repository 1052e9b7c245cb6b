//! Watches the definitions and reports their changes to handlers.

use crate::definition_view::Definition;
use parking_lot::RwLock;
use pintle_apiserver::{errors, registry::Store};
use pintle_cacher::{CachedObject, Freshness};
use pintle_controller::{Delta, Deltas};
use pintle_machinery::Status;
use std::{collections::HashMap, sync::Arc};
use tokio::sync::watch;

/// A change of one definition: its previous and its current state.
pub(crate) struct Change {
    pub(crate) before: Option<Arc<Definition>>,
    pub(crate) now: Option<Arc<Definition>>,
}

impl Change {
    /// The name of the definition.
    pub(crate) fn name(&self) -> &str {
        let either = self.now.as_ref().or(self.before.as_ref());
        either.map_or("", |definition| definition.metadata.name.as_str())
    }

    /// The group of the definition.
    pub(crate) fn group(&self) -> &str {
        let either = self.now.as_ref().or(self.before.as_ref());
        either.map_or("", |definition| definition.spec.group.as_str())
    }
}

/// Receives every change, in order. Called from the informer's task: must not block.
pub(crate) trait Handler: Send + Sync {
    /// A definition has changed.
    fn changed(&self, change: &Change);
}

/// The current definitions.
#[derive(Default)]
pub(crate) struct Definitions(RwLock<HashMap<String, Arc<Definition>>>);

impl Definitions {
    /// A definition by name.
    pub(crate) fn get(&self, name: &str) -> Option<Arc<Definition>> {
        self.0.read().get(name).cloned()
    }

    /// All definitions.
    pub(crate) fn all(&self) -> Vec<Arc<Definition>> {
        self.0.read().values().cloned().collect()
    }

    fn names(&self) -> Vec<String> {
        self.0.read().keys().cloned().collect()
    }

    fn set(&self, name: &str, now: Option<Arc<Definition>>) -> Change {
        let mut all = self.0.write();
        let before = match &now {
            Some(definition) => all.insert(name.to_owned(), definition.clone()),
            None => all.remove(name),
        };
        Change { before, now }
    }
}

/// Feeds the handlers from the watch cache of definitions.
pub(crate) struct Informer {
    pub(crate) store: Arc<Store>,
    pub(crate) definitions: Arc<Definitions>,
    pub(crate) handlers: Vec<Arc<dyn Handler>>,
    /// Becomes true when every definition that existed at the start was reported.
    pub(crate) synced: watch::Sender<bool>,
}

impl Informer {
    /// Runs until the server stops.
    pub(crate) async fn run(self: Arc<Self>, stopping: watch::Receiver<bool>) {
        let handle = |deltas: Deltas<'_>| {
            if deltas.for_each(|delta| self.apply(&delta)).is_some() {
                self.synced.send_if_modified(|synced| !std::mem::replace(synced, true));
            }
        };
        pintle_controller::Informer::new(self.store.cacher()).run(stopping, handle).await;
    }

    /// Checks that each stored definition was processed.
    ///
    /// # Errors
    /// 500 when one cannot be read, or was not processed yet, and the errors of the cache.
    pub(crate) async fn require_known(&self) -> Result<(), Status> {
        let prefix = self.store.key_prefix("");
        let read = self.store.cacher().list(&prefix, Freshness::Consistent).await;
        let snapshot = read.map_err(errors::cacher)?;
        self.store.require_readable(&snapshot, &prefix)?;
        match snapshot.range(&prefix, None).find(|object| self.definitions.get(object.name()).is_none()) {
            Some(unknown) => {
                let name = unknown.name();
                Err(Status::internal_error(format!("the definition {name} was not processed yet")))
            }
            None => Ok(()),
        }
    }

    fn apply(&self, delta: &Delta<'_>) {
        match delta {
            Delta::Set(object) => self.change(object),
            Delta::Removed(object) => self.send(&self.definitions.set(object.name(), None)),
            Delta::Listed(there) => {
                let cached = self.store.cacher().current();
                // An unreadable definition is not deleted: it stays as it was last seen.
                let is_unreadable = |name: &str| {
                    let key = self.store.key("", name);
                    cached.as_ref().is_some_and(|cached| cached.unreadable(&key).is_some())
                };
                for name in self.definitions.names() {
                    if !there.contains("", &name) && !is_unreadable(&name) {
                        self.send(&self.definitions.set(&name, None));
                    }
                }
            }
        }
    }

    fn change(&self, object: &Arc<CachedObject>) {
        match Definition::read(object) {
            Ok(definition) => {
                self.send(&self.definitions.set(object.name(), Some(Arc::new(definition))));
            }
            Err(error) => tracing::error!(name = object.name(), %error, "a definition cannot be read"),
        }
    }

    fn send(&self, change: &Change) {
        for handler in &self.handlers {
            handler.changed(change);
        }
    }
}
