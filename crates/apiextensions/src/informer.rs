//! Follows the definitions and tells of their changes.

use crate::definition_view::Definition;
use parking_lot::RwLock;
use pintle_apiserver::{registry::Store, serving::stopped};
use pintle_cacher::{CachedObject, EventType, Freshness, WatchItem, WatchOptions, WatchScope, WatchStart};
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};
use tokio::sync::watch;

/// A change of one definition: what it was and what it is.
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

    /// The group that it is about.
    pub(crate) fn group(&self) -> &str {
        let either = self.now.as_ref().or(self.before.as_ref());
        either.map_or("", |definition| definition.spec.group.as_str())
    }
}

/// Hears of every change, in order. Called from the informer's task: must not wait.
pub(crate) trait Handler: Send + Sync {
    /// A definition has changed.
    fn changed(&self, change: &Change);
}

/// The definitions as last heard of.
#[derive(Default)]
pub(crate) struct Definitions(RwLock<HashMap<String, Arc<Definition>>>);

impl Definitions {
    /// A definition by name.
    pub(crate) fn get(&self, name: &str) -> Option<Arc<Definition>> {
        self.0.read().get(name).cloned()
    }

    /// All of them.
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

/// Feeds the handlers from the cache of definitions.
pub(crate) struct Informer {
    pub(crate) store: Arc<Store>,
    pub(crate) definitions: Arc<Definitions>,
    pub(crate) handlers: Vec<Arc<dyn Handler>>,
    /// Turns true when every definition that was there at the start has been told of.
    pub(crate) synced: watch::Sender<bool>,
}

/// How many events are taken at once.
const BATCH: usize = 64;
/// How long the informer waits before it watches again.
const PAUSE: Duration = Duration::from_millis(100);

impl Informer {
    /// Runs until the server stops.
    pub(crate) async fn run(self, mut stopping: watch::Receiver<bool>) {
        loop {
            tokio::select! {
                () = stopped(&mut stopping) => return,
                () = self.follow() => {}
            }
            // The watch was cut off, or the cache is not usable: everything is looked at again.
            tokio::select! {
                () = stopped(&mut stopping) => return,
                () = tokio::time::sleep(PAUSE) => {}
            }
        }
    }

    /// Watches once, from the state on.
    async fn follow(&self) {
        let options = WatchOptions {
            start: WatchStart::InitialEvents(Freshness::Any),
            scope: WatchScope::All,
            trigger: None,
            predicate: None,
            bookmarks: true,
            deadline: None,
        };
        let Ok(mut watcher) = self.store.cacher().watch(options).await else { return };
        let mut initial = Some(HashSet::new());
        let mut items = Vec::new();
        while watcher.next_batch(BATCH, &mut items).await {
            for item in items.drain(..) {
                self.take(&item, &mut initial);
            }
        }
    }

    fn take(&self, item: &WatchItem, initial: &mut Option<HashSet<String>>) {
        match item {
            WatchItem::Event { event_type, event } => {
                let Some(object) = event.object(*event_type) else { return };
                if let Some(seen) = initial {
                    seen.insert(object.name().to_owned());
                }
                self.change(object, *event_type == EventType::Deleted);
            }
            WatchItem::Bookmark { initial_events_end: true, .. } => {
                let Some(seen) = initial.take() else { return };
                // What went while nobody was looking.
                for name in self.definitions.names().into_iter().filter(|name| !seen.contains(name)) {
                    self.tell(&self.definitions.set(&name, None));
                }
                self.synced.send_replace(true);
            }
            WatchItem::Bookmark { .. } => {}
        }
    }

    fn change(&self, object: &Arc<CachedObject>, is_deleted: bool) {
        let now = match is_deleted {
            true => None,
            false => match Definition::read(object) {
                Ok(definition) => Some(Arc::new(definition)),
                Err(error) => {
                    tracing::error!(name = object.name(), %error, "a definition cannot be read");
                    return;
                }
            },
        };
        self.tell(&self.definitions.set(object.name(), now));
    }

    fn tell(&self, change: &Change) {
        for handler in &self.handlers {
            handler.changed(change);
        }
    }
}
