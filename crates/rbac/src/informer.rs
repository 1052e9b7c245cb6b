//! Feeds the index from the watch caches.

use crate::{Index, PolicyRule, Rbac, RoleBinding, policy_rule::or_none, rbac::Source};
use pintle_cacher::{
    CachedObject, Cacher, EventType, Freshness, WatchItem, WatchOptions, WatchScope, WatchStart,
};
use pintle_storage::Revision;
use serde::Deserialize;
use std::{collections::HashSet, sync::Arc, time::Duration};
use tokio::{runtime::Handle, sync::watch, task::JoinHandle};

/// The caches of roles and bindings; `None` for one that is not served, of which there are then none.
#[derive(Default)]
pub struct Sources {
    /// `roles`
    pub roles: Option<Arc<Cacher>>,
    /// `clusterroles`
    pub cluster_roles: Option<Arc<Cacher>>,
    /// `rolebindings`
    pub role_bindings: Option<Arc<Cacher>>,
    /// `clusterrolebindings`
    pub cluster_role_bindings: Option<Arc<Cacher>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Role,
    Binding,
}

/// How many events are taken at once.
const BATCH: usize = 256;
/// How long the informer waits before it watches again.
const PAUSE: Duration = Duration::from_millis(100);

impl Rbac {
    /// Follows the caches until `stopping` turns true. Call it once.
    pub fn follow(
        self: &Arc<Self>,
        sources: Sources,
        runtime: &Handle,
        stopping: &watch::Receiver<bool>,
    ) -> Vec<JoinHandle<()>> {
        let sources = [
            (sources.cluster_roles, Kind::Role, true),
            (sources.roles, Kind::Role, false),
            (sources.cluster_role_bindings, Kind::Binding, true),
            (sources.role_bindings, Kind::Binding, false),
        ];
        let (mut followed, mut tasks) = (Vec::new(), Vec::new());
        for (cacher, kind, of_cluster) in sources {
            let Some(cacher) = cacher else { continue };
            let (sender, applied) = watch::channel(None);
            followed.push(Source { cacher: Arc::downgrade(&cacher), applied });
            let informer = Informer { rbac: self.clone(), cacher, kind, of_cluster, applied: sender };
            tasks.push(runtime.spawn(informer.run(stopping.clone())));
        }
        if self.sources.set(followed).is_err() {
            tracing::error!("roles and bindings are followed already");
        }
        tasks
    }
}

struct Informer {
    rbac: Arc<Rbac>,
    cacher: Arc<Cacher>,
    kind: Kind,
    of_cluster: bool,
    applied: watch::Sender<Option<Revision>>,
}

/// What was heard of while the initial events come: what was not is gone.
type Seen = Option<HashSet<(String, String)>>;

impl Informer {
    async fn run(self, mut stopping: watch::Receiver<bool>) {
        let mut stopped = std::pin::pin!(async move {
            // A server whose channel is gone has stopped, too.
            drop(stopping.wait_for(|stopping| *stopping).await);
        });
        loop {
            tokio::select! {
                () = &mut stopped => return,
                () = self.watch() => {}
            }
            // The watch was cut off, or the cache is not usable: everything is looked at again.
            tokio::select! {
                () = &mut stopped => return,
                () = tokio::time::sleep(PAUSE) => {}
            }
        }
    }

    /// Watches once, from the state on.
    async fn watch(&self) {
        let options = WatchOptions {
            start: WatchStart::InitialEvents(Freshness::Any),
            scope: WatchScope::All,
            trigger: None,
            predicate: None,
            bookmarks: true,
            deadline: None,
        };
        let Ok(mut watcher) = self.cacher.watch(options).await else { return };
        let mut seen = Some(HashSet::new());
        let mut items = Vec::new();
        while watcher.next_batch(BATCH, &mut items).await {
            let mut applied = *self.applied.borrow();
            self.rbac.change(|index| {
                for item in items.drain(..) {
                    applied = self.take(index, &item, &mut seen).or(applied);
                }
            });
            self.applied.send_replace(applied);
        }
    }

    /// The revision up to which the index has everything then; `None` while the initial events come.
    fn take(&self, index: &mut Index, item: &WatchItem, seen: &mut Seen) -> Option<Revision> {
        match item {
            WatchItem::Event { event_type, event } => {
                let object = event.object(*event_type)?;
                if let Some(seen) = seen {
                    seen.insert((object.namespace().to_owned(), object.name().to_owned()));
                }
                match event_type {
                    EventType::Added | EventType::Modified => self.set(index, object),
                    EventType::Deleted => self.remove(index, object.namespace(), object.name()),
                }
                seen.is_none().then(|| event.revision())
            }
            WatchItem::Bookmark { revision, initial_events_end } => {
                if let Some(seen) = seen.take_if(|_| *initial_events_end) {
                    // What went while nobody was looking.
                    let names = match self.kind {
                        Kind::Role => index.role_names(self.of_cluster),
                        Kind::Binding => index.binding_names(self.of_cluster),
                    };
                    for (namespace, name) in names.into_iter().filter(|name| !seen.contains(name)) {
                        self.remove(index, &namespace, &name);
                    }
                }
                seen.is_none().then_some(*revision)
            }
        }
    }

    fn set(&self, index: &mut Index, object: &CachedObject) {
        let (namespace, name) = (object.namespace(), object.name());
        let result = match self.kind {
            Kind::Role => read_rules(object.json()).map(|rules| index.set_role(namespace, name, Some(rules))),
            Kind::Binding => {
                RoleBinding::read(namespace, name, object.json()).map(|binding| index.set_binding(binding))
            }
        };
        if let Err(error) = result {
            tracing::error!(namespace, name, %error, "a role or binding cannot be read and gives nothing");
            self.remove(index, namespace, name);
        }
    }

    fn remove(&self, index: &mut Index, namespace: &str, name: &str) {
        match self.kind {
            Kind::Role => index.set_role(namespace, name, None),
            Kind::Binding => index.remove_binding(namespace, name),
        }
    }
}

fn read_rules(json: &[u8]) -> Result<Vec<PolicyRule>, serde_json::Error> {
    #[derive(Deserialize)]
    struct Body {
        #[serde(default, deserialize_with = "or_none")]
        rules: Vec<PolicyRule>,
    }
    Ok(serde_json::from_slice::<Body>(json)?.rules)
}
