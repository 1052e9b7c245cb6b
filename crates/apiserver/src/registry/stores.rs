//! All stores of a server.

use super::{
    CustomResource, DeclarationError, StorageFactory, Store, StoreConfig, TypeSchema, VersionedResource,
    custom_resources::CustomResources, decoded_objects::DecodedObjects,
};
use crate::errors;
use arc_swap::ArcSwap;
use pintle_admission::{ListState, Lister, Undecoded};
use pintle_cacher::{CachedObject, Snapshot};
use pintle_machinery::{
    GroupResource, GroupVersionKind, GroupVersionResource, Status, Value, selectors::LabelSelector,
};
use pintle_registry::{BoxFuture, Resource, ResourceInfo};
use pintle_supervisor::Supervisor;
use std::{
    collections::HashMap,
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicU64, Ordering},
    },
};

/// All resources of a server: built-in ones, and custom resources, which are added and removed at run time.
pub struct Stores {
    resources: Vec<Arc<VersionedResource>>,
    internal: Vec<Arc<Store>>,
    by_path: HashMap<GroupVersionResource, Arc<VersionedResource>>,
    by_resource: HashMap<GroupResource, Arc<Store>>,
    custom: ArcSwap<CustomResources>,
    /// Held while the custom resources are changed.
    changing: parking_lot::Mutex<()>,
    /// The number of changes of the custom resources.
    custom_changes: AtomicU64,
    /// The stores of the server beside this one, for lookups by admission.
    beside: Option<Arc<Stores>>,
    /// The stores of a server that was started beside this one.
    other: OnceLock<Weak<Stores>>,
    decoded: DecodedObjects,
}

impl Stores {
    /// Starts a store for every stored resource. Versions and cohabiting resources with one storage path share a store.
    /// `internal` resources are stored and not served: only code inside the server accesses them.
    ///
    /// # Errors
    /// When the schema does not have a declaration's type, or no resource declares the storage kind of a path.
    pub fn start(
        resources: Vec<Resource>,
        internal: Vec<Resource>,
        storage: &Arc<StorageFactory>,
        supervisor: &Supervisor,
    ) -> Result<Arc<Stores>, DeclarationError> {
        Stores::start_beside(None, resources, internal, storage, supervisor)
    }

    /// As [`Stores::start`], for a server of a chain: code inside it finds the stores that it does not have in
    /// `beside`.
    ///
    /// # Errors
    /// As [`Stores::start`].
    pub fn start_beside(
        beside: Option<Arc<Stores>>,
        resources: Vec<Resource>,
        internal: Vec<Resource>,
        storage: &Arc<StorageFactory>,
        supervisor: &Supervisor,
    ) -> Result<Arc<Stores>, DeclarationError> {
        let mut by_location: HashMap<String, Arc<Store>> = HashMap::new();
        let is_stored = Resource::is_stored;
        for resource in resources
            .iter()
            .chain(&internal)
            .filter(|resource| is_stored(resource) && resource.conversion.is_none())
        {
            if by_location.contains_key(&resource.storage.path) {
                continue;
            }
            let config = StoreConfig {
                resource: Arc::new(resource.clone()),
                versions: Vec::new(),
                storage: storage.clone(),
            };
            by_location.insert(resource.storage.path.clone(), Store::start(config, supervisor)?);
        }
        let mut stores = Stores {
            resources: Vec::new(),
            internal: Vec::new(),
            by_path: HashMap::new(),
            by_resource: HashMap::new(),
            custom: ArcSwap::default(),
            changing: parking_lot::Mutex::default(),
            custom_changes: AtomicU64::new(0),
            beside,
            other: OnceLock::new(),
            decoded: DecodedObjects::default(),
        };
        for resource in internal {
            if let Some(store) = by_location.get(&resource.storage.path) {
                stores.by_resource.insert(resource.group_resource(), store.clone());
                stores.internal.push(store.clone());
            }
        }
        for resource in resources {
            let store = match is_stored(&resource) {
                true => Some(
                    by_location
                        .get(&resource.storage.path)
                        .ok_or_else(|| DeclarationError::NotStored { path: resource.storage.path.clone() })?
                        .clone(),
                ),
                false => None,
            };
            if let Some(store) = &store {
                stores.by_resource.entry(resource.group_resource()).or_insert_with(|| store.clone());
            }
            let schema = TypeSchema::of(&resource).ok_or_else(|| DeclarationError::no_schema(&resource))?;
            let slot = match &resource.conversion {
                None => 0,
                Some(_) => {
                    let path = &resource.storage.path;
                    let others = stores.resources.iter().filter(|other| other.resource.storage.path == *path);
                    others.count() as u32 + 1
                }
            };
            let versioned = Arc::new(VersionedResource {
                resource: Arc::new(resource),
                schema,
                slot,
                store,
                series: Default::default(),
            });
            stores.by_path.insert(versioned.resource.resource.clone(), versioned.clone());
            stores.resources.push(versioned);
        }
        Ok(Arc::new(stores))
    }

    /// The resources that the server was started with, in the order of their declaration.
    pub fn resources(&self) -> &[Arc<VersionedResource>] {
        &self.resources
    }

    /// The versions in which the resources that the server was started with are stored, decoded and served, ordered by
    /// group and name.
    pub fn resource_infos(&self) -> Vec<ResourceInfo> {
        let mut by_path: HashMap<&str, (&Arc<Store>, Vec<&Resource>)> = HashMap::new();
        for served in &self.resources {
            if let Some(store) = &served.store {
                let of_path = by_path.entry(&served.resource.storage.path);
                of_path.or_insert_with(|| (store, Vec::new())).1.push(&*served.resource);
            }
        }
        let infos =
            by_path.values().filter_map(|(store, served)| ResourceInfo::new(store.resource(), served));
        let mut infos: Vec<ResourceInfo> = infos.collect();
        infos.sort_by(|a, b| a.resource.cmp(&b.resource));
        infos
    }

    /// The served resource of a group, version and name.
    pub fn find(&self, resource: &GroupVersionResource) -> Option<Arc<VersionedResource>> {
        self.by_path.get(resource).cloned().or_else(|| self.custom.load().find(resource))
    }

    /// Finds a resource for code inside this server, in the servers beside it, too.
    pub(super) fn find_among_all(&self, resource: &GroupVersionResource) -> Option<Arc<VersionedResource>> {
        self.find_among(|stores| stores.find(resource))
    }

    /// All versions of a stored resource of this server or of one beside it.
    pub fn versions_of(&self, resource: &Resource) -> Vec<Arc<VersionedResource>> {
        let found = self.find_among(|stores| {
            let versions = stores.own_versions_of(resource);
            (!versions.is_empty()).then_some(versions)
        });
        found.unwrap_or_default()
    }

    fn own_versions_of(&self, resource: &Resource) -> Vec<Arc<VersionedResource>> {
        if let Some(custom) = self.custom.load().get(&resource.group_resource()) {
            return custom.all_versions().to_vec();
        }
        let path = &resource.storage.path;
        self.resources.iter().filter(|other| other.resource.storage.path == *path).cloned().collect()
    }

    /// The store of a resource.
    ///
    /// # Errors
    /// 404 when there is none.
    pub fn store(&self, resource: &GroupResource) -> Result<Arc<Store>, Status> {
        self.find_store(resource).ok_or_else(Status::no_such_resource)
    }

    /// Lets code inside this server find the stores of a server that was started beside this one, too.
    pub fn look_up_in(&self, other: &Arc<Stores>) {
        // Set once: the servers of a chain never change.
        let _ = self.other.set(Arc::downgrade(other));
    }

    fn find_store(&self, resource: &GroupResource) -> Option<Arc<Store>> {
        self.find_among(|stores| {
            let custom = || stores.custom.load().get(resource).map(|custom| custom.store().clone());
            stores.by_resource.get(resource).cloned().or_else(custom)
        })
    }

    /// The served, stored resource of a kind.
    pub(super) fn find_kind(&self, kind: &GroupVersionKind) -> Option<Arc<VersionedResource>> {
        let has_kind = |served: &&Arc<VersionedResource>| {
            served.resource.is_stored() && served.resource.group_version_kind() == *kind
        };
        self.find_among(|stores| {
            let custom = || {
                let custom = stores.custom.load();
                custom
                    .of_group(&kind.group)
                    .find_map(|custom| custom.versions().iter().find(has_kind).cloned())
            };
            stores.resources.iter().find(has_kind).cloned().or_else(custom)
        })
    }

    /// Searches these stores, and then those of the servers beside this one.
    fn find_among<T>(&self, find: impl Fn(&Stores) -> Option<T>) -> Option<T> {
        let other_of = |stores: &Stores| find(&*stores.other.get()?.upgrade()?);
        let beside = || {
            let beside = self.beside.as_ref()?;
            find(beside).or_else(|| other_of(beside))
        };
        find(self).or_else(beside).or_else(|| other_of(self))
    }

    /// All stores, each once.
    pub fn all(&self) -> Vec<Arc<Store>> {
        let served = self.resources.iter().filter(|resource| resource.is_storage_version());
        let mut all: Vec<_> = served.filter_map(|resource| resource.store.clone()).collect();
        all.extend(self.internal.iter().cloned());
        all.extend(self.custom.load().all().map(|custom| custom.store().clone()));
        all
    }

    /// Serves a custom resource from now on, in place of the one with the same name, whose watches end.
    pub fn serve_custom(&self, custom: CustomResource) {
        let resource = custom.store().group_resource().clone();
        self.change_custom(|all| all.set(resource, Arc::new(custom)));
    }

    /// Stops serving a custom resource; its watches end.
    pub fn remove_custom(&self, resource: &GroupResource) {
        self.change_custom(|all| all.remove(resource));
    }

    fn change_custom(&self, change: impl FnOnce(&mut CustomResources) -> Option<Arc<CustomResource>>) {
        let before = {
            let _one_at_a_time = self.changing.lock();
            let mut all = CustomResources::clone(&self.custom.load());
            let before = change(&mut all);
            self.custom.store(Arc::new(all));
            self.custom_changes.fetch_add(1, Ordering::Release);
            before
        };
        if let Some(before) = before {
            before.store().retire();
        }
    }

    /// The custom resource of this group and name.
    pub fn custom(&self, resource: &GroupResource) -> Option<Arc<CustomResource>> {
        self.custom.load().get(resource).cloned()
    }

    /// All custom resources, by group and name.
    pub fn all_custom(&self) -> Vec<Arc<CustomResource>> {
        self.custom.load().all().cloned().collect()
    }

    /// Sets whether a custom resource's definition is being deleted; creates are rejected then.
    pub fn set_terminating(&self, resource: &GroupResource, is_terminating: bool) {
        let custom = self.custom(resource);
        if custom.is_some_and(|custom| custom.set_terminating(is_terminating)) {
            self.custom_changes.fetch_add(1, Ordering::Release);
        }
    }

    /// The custom resources of a group, by name.
    pub fn custom_of_group(&self, group: &str) -> Vec<Arc<CustomResource>> {
        self.custom.load().of_group(group).cloned().collect()
    }

    /// A number that differs after each change of the custom resources.
    pub fn custom_changes(&self) -> u64 {
        self.custom_changes.load(Ordering::Acquire)
    }

    /// Waits until every cache has listed its resource once.
    ///
    /// # Errors
    /// When the server stops first.
    pub async fn wait_ready(&self) -> Result<(), Status> {
        for store in self.all() {
            store.cacher().wait_ready().await.map_err(errors::cacher)?;
        }
        Ok(())
    }

    /// Whether every cache has listed its resource once.
    pub fn is_ready(&self) -> bool {
        self.all().iter().all(|store| store.cacher().is_ready())
    }

    /// Stops all caches and ends all watches.
    pub fn stop(&self) {
        self.all().iter().for_each(|store| store.cacher().stop());
    }
}

impl Lister for Stores {
    fn get(&self, resource: &GroupResource, namespace: &str, name: &str) -> Option<Arc<Value>> {
        let store = self.find_store(resource)?;
        let snapshot = store.cacher().current()?;
        let cached = snapshot.get(&store.key(namespace, name))?;
        self.decoded.get(&store, cached).ok()
    }

    fn labels(
        &self,
        resource: &GroupResource,
        namespace: &str,
        name: &str,
        keys: &[&str],
    ) -> Option<Vec<(String, String)>> {
        let store = self.find_store(resource)?;
        let snapshot = store.cacher().current()?;
        let labels = snapshot.get(&store.key(namespace, name))?.labels();
        let label = |key: &&str| Some(((*key).to_owned(), labels.get(key)?.to_owned()));
        Some(keys.iter().filter_map(label).collect())
    }

    fn list(&self, resource: &GroupResource, namespace: &str) -> Option<Vec<Arc<Value>>> {
        let store = self.find_store(resource)?;
        let snapshot = store.cacher().current()?;
        // Admission acts on the absence of objects.
        let prefix = store.key_prefix(namespace);
        snapshot.last_seen(&prefix)?.map(|object| self.decoded.get(&store, object).ok()).collect()
    }

    fn select<'a>(
        &'a self,
        resource: &GroupResource,
        namespace: &str,
        selector: &LabelSelector,
    ) -> Option<Vec<Undecoded<'a>>> {
        let store = self.find_store(resource)?;
        let snapshot = store.cacher().current()?;
        let prefix = store.key_prefix(namespace);
        let selected = snapshot.last_seen(&prefix)?.filter(|object| {
            let labels = object.labels();
            selector.matches_all(labels.iter(), |key| labels.get(key))
        });
        let undecoded = |object: &Arc<CachedObject>| {
            let (store, object) = (store.clone(), object.clone());
            Undecoded::new(object.size(), move || self.decoded.get(&store, &object))
        };
        Some(selected.map(undecoded).collect())
    }

    fn page(
        &self,
        resource: &GroupResource,
        namespace: &str,
        after: &str,
        limit: usize,
    ) -> Option<Vec<Value>> {
        let store = self.find_store(resource)?;
        let snapshot = store.cacher().current()?;
        let prefix = store.key_prefix(namespace);
        let after = (!after.is_empty()).then(|| store.key(namespace, after));
        let next = snapshot.range(&prefix, after.as_ref());
        Some(next.filter_map(|object| store.stored_tree(&object.json()).ok()).take(limit).collect())
    }

    fn count(&self, resource: &GroupResource, namespace: &str, after: &str) -> Option<usize> {
        let store = self.find_store(resource)?;
        let snapshot = store.cacher().current()?;
        Some(snapshot.count(&store.key_prefix(namespace), Some(&store.key(namespace, after))))
    }

    fn catch_up<'a>(&'a self, resource: &'a GroupResource) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let Some(store) = self.find_store(resource) else { return };
            if let Err(error) = store.cacher().catch_up().await {
                tracing::debug!(%error, %resource, "admission reads a cache that may be behind");
            }
        })
    }

    fn state(&self, resource: &GroupResource) -> Option<ListState> {
        self.find_store(resource)?.cacher().current().map(ListState::new)
    }

    fn is_in_state(&self, resource: &GroupResource, state: &ListState) -> bool {
        let current = || self.find_store(resource)?.cacher().current();
        match (state.get::<Snapshot>(), current()) {
            (Some(state), Some(current)) => current.is_same_state(state),
            _ => false,
        }
    }
}
