//! Feeds the index from the watch caches.

use crate::{Index, PolicyRule, Rbac, RoleBinding, policy_rule::or_none, rbac::Source};
use pintle_cacher::{CachedObject, Cacher};
use pintle_controller::{Delta, Deltas, Informer};
use pintle_storage::Revision;
use pintle_supervisor::Supervisor;
use serde::Deserialize;
use std::sync::Arc;
use tokio::{sync::watch, task::JoinHandle};

/// The watch caches of roles and bindings; `None` for a resource that is not served.
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

impl Rbac {
    /// Follows the caches until `stopping` becomes true. Call it once.
    pub fn follow(
        self: &Arc<Self>,
        sources: Sources,
        supervisor: &Supervisor,
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
            let part = format!("informer/{}", cacher.config().resource);
            let updater =
                Arc::new(IndexUpdater { rbac: self.clone(), cacher, kind, of_cluster, applied: sender });
            let stopping = stopping.clone();
            tasks.push(supervisor.spawn_restarting(part, move || updater.clone().run(stopping.clone())));
        }
        if self.sources.set(followed).is_err() {
            tracing::error!("roles and bindings are followed already");
        }
        tasks
    }
}

struct IndexUpdater {
    rbac: Arc<Rbac>,
    cacher: Arc<Cacher>,
    kind: Kind,
    of_cluster: bool,
    applied: watch::Sender<Option<Revision>>,
}

impl IndexUpdater {
    async fn run(self: Arc<Self>, stopping: watch::Receiver<bool>) {
        let handle = |deltas: Deltas<'_>| {
            let mut reached = None;
            self.rbac.change(|index| reached = deltas.for_each(|delta| self.apply(index, &delta)));
            if reached.is_some() {
                self.applied.send_replace(reached);
            }
        };
        Informer::new(&self.cacher).run(stopping, handle).await;
    }

    fn apply(&self, index: &mut Index, delta: &Delta<'_>) {
        match delta {
            Delta::Set(object) => self.set(index, object),
            Delta::Removed(object) => self.remove(index, object.namespace(), object.name()),
            Delta::Listed(there) => {
                let names = match self.kind {
                    Kind::Role => index.role_names(self.of_cluster),
                    Kind::Binding => index.binding_names(self.of_cluster),
                };
                for (namespace, name) in names.into_iter().filter(|(of, name)| !there.contains(of, name)) {
                    self.remove(index, &namespace, &name);
                }
            }
        }
    }

    fn set(&self, index: &mut Index, object: &CachedObject) {
        let (namespace, name) = (object.namespace(), object.name());
        let result = match self.kind {
            Kind::Role => {
                read_rules(&object.json()).map(|rules| index.set_role(namespace, name, Some(rules)))
            }
            Kind::Binding => {
                RoleBinding::read(namespace, name, &object.json()).map(|binding| index.set_binding(binding))
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
