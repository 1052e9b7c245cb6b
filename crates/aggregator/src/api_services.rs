//! The registered API services, as requests, discovery and the controllers read them.

use crate::{
    ServiceDirectory,
    backend::{Backend, BackendSpec},
    condition::is_available,
};
use arc_swap::ArcSwap;
use imbl::OrdMap;
use parking_lot::Mutex;
use pintle_cacher::Cacher;
use pintle_controller::{Delta, Deltas, Informer};
use pintle_dialer::{ClientCertificate, Dialer};
use pintle_machinery::{GroupVersion, Value, ValueExt, codec::json};
use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};
use tokio::sync::watch;

/// All API services by name, at one time. A clone is cheap.
pub(crate) type Snapshot = OrdMap<Arc<str>, Arc<ApiService>>;

/// One API service.
#[derive(Debug)]
pub(crate) struct ApiService {
    /// The name: `VERSION.GROUP`.
    pub(crate) name: Arc<str>,
    pub(crate) group_version: GroupVersion,
    pub(crate) group_priority: i64,
    pub(crate) version_priority: i64,
    /// Whether the `Available` condition is `True`.
    pub(crate) is_available: bool,
    /// The server behind the service; `None` for an API service that this server serves itself.
    pub(crate) backend: Option<Arc<Backend>>,
}

/// Namespace and name of a service.
type ServiceKey = (String, String);

/// Called with the name of an API service that has changed.
type Listener = Box<dyn Fn(&str) + Send + Sync>;

/// The registered API services. Readers get an immutable [`Snapshot`].
pub struct ApiServices {
    current: ArcSwap<Snapshot>,
    /// Serializes changes, which read and replace the snapshot.
    writer: Mutex<()>,
    /// The number of changes.
    changes: watch::Sender<u64>,
    is_synced: watch::Sender<bool>,
    /// The names of the API services behind each service.
    by_service: Mutex<HashMap<ServiceKey, Vec<Arc<str>>>>,
    listener: OnceLock<Listener>,
    directory: Arc<ServiceDirectory>,
    certificate: Arc<ClientCertificate>,
    dialer: Dialer,
}

impl ApiServices {
    /// No API services, until [`ApiServices::run`] has read them. Their servers are in the network of the dialer.
    pub fn new(
        directory: Arc<ServiceDirectory>,
        certificate: Arc<ClientCertificate>,
        dialer: Dialer,
    ) -> ApiServices {
        ApiServices {
            current: ArcSwap::default(),
            writer: Mutex::default(),
            changes: watch::Sender::new(0),
            is_synced: watch::Sender::new(false),
            by_service: Mutex::default(),
            listener: OnceLock::new(),
            directory,
            certificate,
            dialer,
        }
    }

    /// The API services.
    pub(crate) fn current(&self) -> Arc<Snapshot> {
        self.current.load_full()
    }

    /// The API service of this name.
    pub(crate) fn get(&self, name: &str) -> Option<Arc<ApiService>> {
        self.current.load().get(name).cloned()
    }

    /// The services of the cluster.
    pub(crate) fn directory(&self) -> &Arc<ServiceDirectory> {
        &self.directory
    }

    /// Sets the function that is called with the name of each API service that has changed. Only the first call has an
    /// effect.
    pub(crate) fn set_listener(&self, listener: impl Fn(&str) + Send + Sync + 'static) {
        let _ = self.listener.set(Box::new(listener));
    }

    /// The names of the API services with this service.
    pub(crate) fn behind(&self, namespace: &str, name: &str) -> Vec<Arc<str>> {
        let by_service = self.by_service.lock();
        by_service.get(&(namespace.to_owned(), name.to_owned())).cloned().unwrap_or_default()
    }

    /// Tells of changes: the number of changes.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Waits until the API services that existed at the start are known.
    pub async fn wait_synced(&self) {
        // The sender lives as long as `self`.
        drop(self.is_synced.subscribe().wait_for(|synced| *synced).await);
    }

    /// Follows the watch cache of API services, and changes of the client certificate, until `stopping` becomes true.
    pub async fn run(&self, cacher: &Arc<Cacher>, stopping: watch::Receiver<bool>) {
        let mut certificate = self.certificate.changes();
        let informer = Informer::new(cacher);
        let following = informer.run(stopping, |deltas| self.follow(deltas));
        let reconnecting = async {
            while certificate.changed().await.is_ok() {
                self.change(|snapshot| {
                    for (_, kept) in snapshot.clone().iter().filter(|(_, kept)| kept.backend.is_some()) {
                        let backend = kept.backend.as_ref().map(|old| self.backend(old.spec().clone()));
                        let renewed = ApiService { backend, ..ApiService::clone_of(kept) };
                        snapshot.insert(kept.name.clone(), Arc::new(renewed));
                    }
                });
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = following => {}
            () = reconnecting => {}
        }
    }

    fn follow(&self, deltas: Deltas<'_>) {
        let (mut is_listed, mut changed) = (false, Vec::new());
        self.change(|snapshot| {
            deltas.for_each(|delta| match delta {
                Delta::Set(object) => {
                    // An object that cannot be decoded is served as before.
                    let Ok(tree) = json::decode_any(&object.json()) else { return };
                    let service = self.api_service(&tree, snapshot.get(object.name()));
                    changed.push(service.name.clone());
                    snapshot.insert(service.name.clone(), Arc::new(service));
                }
                Delta::Removed(object) => {
                    changed.extend(snapshot.remove(object.name()).map(|gone| gone.name.clone()));
                }
                Delta::Listed(names) => {
                    let all = std::mem::take(snapshot);
                    for (name, kept) in all {
                        match names.contains("", &name) {
                            true => drop(snapshot.insert(name, kept)),
                            false => changed.push(name),
                        }
                    }
                    is_listed = true;
                }
            });
        });
        if let Some(listener) = self.listener.get() {
            changed.iter().for_each(|name| listener(name));
        }
        if is_listed {
            self.is_synced.send_replace(true);
        }
    }

    /// Replaces all API services by these objects.
    #[cfg(test)]
    pub(crate) fn set(&self, objects: &[Value]) {
        self.change(|snapshot| {
            let before = std::mem::take(snapshot);
            for object in objects {
                let name = object.str_at("metadata.name");
                let service = self.api_service(object, before.get(name));
                snapshot.insert(service.name.clone(), Arc::new(service));
            }
        });
        self.is_synced.send_replace(true);
    }

    fn change(&self, change: impl FnOnce(&mut Snapshot)) {
        let writer = self.writer.lock();
        let mut snapshot = Snapshot::clone(&self.current.load());
        change(&mut snapshot);
        let mut by_service: HashMap<_, Vec<_>> = HashMap::new();
        for (name, service) in &snapshot {
            let Some(spec) = service.backend.as_ref().map(|backend| backend.spec()) else { continue };
            by_service.entry((spec.namespace.clone(), spec.name.clone())).or_default().push(name.clone());
        }
        *self.by_service.lock() = by_service;
        self.current.store(Arc::new(snapshot));
        drop(writer);
        self.changes.send_modify(|changes| *changes += 1);
    }

    fn api_service(&self, object: &Value, before: Option<&Arc<ApiService>>) -> ApiService {
        let backend = BackendSpec::of(object).map(|spec| {
            let kept = before.and_then(|before| before.backend.as_ref());
            match kept.filter(|kept| *kept.spec() == spec) {
                Some(kept) => kept.clone(),
                None => self.backend(spec),
            }
        });
        ApiService {
            name: object.str_at("metadata.name").into(),
            group_version: GroupVersion::new(object.str_at("spec.group"), object.str_at("spec.version")),
            group_priority: object.i64_at("spec.groupPriorityMinimum").unwrap_or_default(),
            version_priority: object.i64_at("spec.versionPriority").unwrap_or_default(),
            is_available: is_available(object),
            backend,
        }
    }

    fn backend(&self, spec: BackendSpec) -> Arc<Backend> {
        Arc::new(Backend::new(spec, self.directory.clone(), &self.certificate, &self.dialer))
    }
}

impl ApiService {
    fn clone_of(other: &ApiService) -> ApiService {
        ApiService {
            name: other.name.clone(),
            group_version: other.group_version.clone(),
            backend: other.backend.clone(),
            ..*other
        }
    }
}

/// The name of the API service of a group and version.
pub(crate) fn name_of(group_version: &GroupVersion) -> String {
    format!("{}.{}", group_version.version, group_version.group)
}
