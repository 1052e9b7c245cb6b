//! All stores of a server, and their access for code inside the server.

use super::{
    AcceptAll, Conversions, CustomResource, ManagedWrite, Preconditions, StorageFactory, Store, StoreConfig,
    Transform, TypeSchema, Upsert, custom_resources::CustomResources, update::Updated,
};
use crate::{base::warning::Warnings, errors};
use arc_swap::ArcSwap;
use hashlink::LruCache;
use jiff::Timestamp;
use pintle_admission::Lister;
use pintle_auth::authz::AlwaysAllow;
use pintle_cacher::{CachedObject, Freshness};
use pintle_machinery::{
    GroupResource, GroupVersion, GroupVersionResource, Status, UserInfo, Value,
    user::{APISERVER_USER, SYSTEM_MASTERS},
};
use pintle_registry::{
    BoxFuture, DefaultStrategy, DeleteOptions, Registry, RequestContext, Resource, Strategy, SubresourceKind,
    WriteOptions,
};
use pintle_supervisor::Supervisor;
use std::{
    collections::HashMap,
    sync::{
        Arc, LazyLock, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

/// A resource in one served version.
pub struct VersionedResource {
    /// The declaration of this version.
    pub resource: Arc<Resource>,
    /// The schema of this version's objects.
    pub schema: TypeSchema,
    /// The index of the version within its store; 0 is the storage version.
    pub slot: u32,
    /// The store of its objects; `None` for resources that are not stored.
    pub store: Option<Arc<Store>>,
}

impl VersionedResource {
    /// Whether this is the registry's version, so that objects need no built-in conversion.
    pub fn is_storage_version(&self) -> bool {
        self.resource.conversion.is_none()
    }

    /// Whether the cache holds all objects in this version. Objects of a custom resource with several versions may be
    /// in any.
    pub fn is_cached_version(&self) -> bool {
        self.resource.converter.is_none() && self.resource.conversion.is_none()
    }

    /// Converts an object from the storage version to this one.
    pub fn from_storage(&self, object: Value) -> Value {
        match self.resource.conversion {
            Some(conversion) => (conversion.from_storage)(object),
            None => object,
        }
    }

    /// Converts an object from this version to the storage version.
    pub fn to_storage(&self, object: Value) -> Value {
        match self.resource.conversion {
            Some(conversion) => (conversion.to_storage)(object),
            None => object,
        }
    }
}

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
    ) -> Result<Arc<Stores>, String> {
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
    ) -> Result<Arc<Stores>, String> {
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
                        .ok_or_else(|| format!("nothing is stored as {}", resource.storage.path))?
                        .clone(),
                ),
                false => None,
            };
            if let Some(store) = &store {
                stores.by_resource.entry(resource.group_resource()).or_insert_with(|| store.clone());
            }
            let schema =
                TypeSchema::of(&resource).ok_or_else(|| format!("no schema for {}", resource.type_name))?;
            let slot = match &resource.conversion {
                None => 0,
                Some(_) => {
                    let path = &resource.storage.path;
                    let others = stores.resources.iter().filter(|other| other.resource.storage.path == *path);
                    others.count() as u32 + 1
                }
            };
            let versioned = Arc::new(VersionedResource { resource: Arc::new(resource), schema, slot, store });
            stores.by_path.insert(versioned.resource.resource.clone(), versioned.clone());
            stores.resources.push(versioned);
        }
        Ok(Arc::new(stores))
    }

    /// The resources that the server was started with, in the order of their declaration.
    pub fn resources(&self) -> &[Arc<VersionedResource>] {
        &self.resources
    }

    /// The served resource of a group, version and name.
    pub fn find(&self, resource: &GroupVersionResource) -> Option<Arc<VersionedResource>> {
        self.by_path.get(resource).cloned().or_else(|| self.custom.load().find(resource))
    }

    /// All versions of a stored resource.
    pub fn versions_of(&self, resource: &Resource) -> Vec<Arc<VersionedResource>> {
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

    fn find_store(&self, resource: &GroupResource) -> Option<Arc<Store>> {
        if let Some(store) = self.by_resource.get(resource) {
            return Some(store.clone());
        }
        if let Some(custom) = self.custom.load().get(resource) {
            return Some(custom.store().clone());
        }
        self.beside.as_ref()?.find_store(resource)
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

    /// Updates the managed fields of a write from inside the server, if it names a field manager.
    async fn manage(&self, store: &Store, options: &WriteOptions, old: Option<&Value>, new: &mut Value) {
        if options.field_manager.is_empty() {
            return;
        }
        let Some(resource) = self.find(&store.resource().resource) else { return };
        let write = ManagedWrite {
            stores: self,
            resource: &resource,
            manager: &options.field_manager,
            subresource: options.subresource,
            now: Timestamp::now(),
            versions: OnceLock::new(),
            conversions: Conversions::default(),
        };
        write.update(old, new).await;
    }

    /// Stops all caches and ends all watches.
    pub fn stop(&self) {
        self.all().iter().for_each(|store| store.cacher().stop());
    }
}

static SERVER_USER: LazyLock<UserInfo> = LazyLock::new(|| UserInfo {
    name: APISERVER_USER.to_owned(),
    groups: vec![SYSTEM_MASTERS.to_owned()],
    ..UserInfo::default()
});

/// The parts of a request context for a write from inside the server.
struct Inner<'a> {
    options: &'a WriteOptions,
    namespace: &'a str,
    name: &'a str,
    version: GroupVersion,
}

impl Inner<'_> {
    fn context<'b>(&'b self, registry: &'b dyn Registry) -> RequestContext<'b> {
        RequestContext {
            user: self.options.user.as_ref().unwrap_or(&SERVER_USER),
            namespace: self.namespace,
            name: self.name,
            subresource: self.options.subresource,
            group_version: &self.version,
            now: Timestamp::now(),
            dry_run: self.options.dry_run,
            registry,
            authorizer: &AlwaysAllow,
        }
    }
}

impl Stores {
    async fn read(
        &self,
        resource: &GroupResource,
        namespace: &str,
        name: &str,
        freshness: Freshness,
    ) -> Result<Value, Status> {
        let store = self.store(resource)?;
        let object = store.find(&store.key(namespace, name), freshness).await?;
        let object = object.ok_or_else(|| Status::not_found(resource, name))?;
        store.tree(object.json()).await
    }
}

impl Registry for Stores {
    fn get<'a>(
        &'a self,
        resource: &'a GroupResource,
        namespace: &'a str,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Value, Status>> {
        Box::pin(self.read(resource, namespace, name, Freshness::Consistent))
    }

    fn get_cached<'a>(
        &'a self,
        resource: &'a GroupResource,
        namespace: &'a str,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Value, Status>> {
        Box::pin(self.read(resource, namespace, name, Freshness::Any))
    }

    fn list<'a>(
        &'a self,
        resource: &'a GroupResource,
        namespace: &'a str,
    ) -> BoxFuture<'a, Result<Vec<Value>, Status>> {
        Box::pin(async move {
            let store = self.store(resource)?;
            let prefix = store.key_prefix(namespace);
            let read = store.cacher().list(&prefix, Freshness::Consistent).await;
            let snapshot = read.map_err(errors::cacher)?;
            // Code inside the server acts on the absence of objects.
            store.require_readable(&snapshot, &prefix)?;
            let mut objects = Vec::new();
            for object in snapshot.range(&prefix, None) {
                objects.push(store.tree(object.json()).await?);
            }
            Ok(objects)
        })
    }

    fn create<'a>(
        &'a self,
        resource: &'a GroupResource,
        namespace: &'a str,
        mut object: Value,
        options: WriteOptions,
    ) -> BoxFuture<'a, Result<Value, Status>> {
        Box::pin(async move {
            let store = self.store(resource)?;
            store.set_defaults(&mut object);
            let version = store.resource().resource.group_version();
            let inner = Inner { options: &options, namespace, name: "", version };
            self.manage(&store, &options, None, &mut object).await;
            let warnings = Warnings::default();
            let written = store.create(&inner.context(self), object, &AcceptAll, &warnings).await?;
            Ok(written.object)
        })
    }

    fn update<'a>(
        &'a self,
        resource: &'a GroupResource,
        namespace: &'a str,
        name: &'a str,
        change: Box<dyn FnMut(Value) -> Result<Value, Status> + Send + 'a>,
        options: WriteOptions,
    ) -> BoxFuture<'a, Result<Value, Status>> {
        Box::pin(async move {
            let store = self.store(resource)?;
            let version = store.resource().resource.group_version();
            let inner = Inner { options: &options, namespace, name, version };
            let strategy = store.strategy(options.subresource)?;
            let mut transform = Change { change, store: &store, stores: self, options: &options };
            let updated: Updated = store
                .update(
                    &inner.context(self),
                    strategy,
                    &Preconditions::default(),
                    Upsert::Never,
                    &mut transform,
                    &Warnings::default(),
                )
                .await?;
            Ok(updated.written.object)
        })
    }

    fn delete<'a>(
        &'a self,
        resource: &'a GroupResource,
        namespace: &'a str,
        name: &'a str,
        options: DeleteOptions,
    ) -> BoxFuture<'a, Result<Value, Status>> {
        Box::pin(async move {
            let store = self.store(resource)?;
            let version = store.resource().resource.group_version();
            let write = WriteOptions { dry_run: options.dry_run, ..WriteOptions::default() };
            let inner = Inner { options: &write, namespace, name, version };
            let deleted = store.delete(&inner.context(self), &options, &AcceptAll).await?;
            Ok(deleted.object)
        })
    }
}

struct Change<'a> {
    change: Box<dyn FnMut(Value) -> Result<Value, Status> + Send + 'a>,
    store: &'a Store,
    stores: &'a Stores,
    options: &'a WriteOptions,
}

impl Transform for Change<'_> {
    fn apply<'a>(&'a mut self, old: Option<&'a Value>) -> BoxFuture<'a, Result<Value, Status>> {
        Box::pin(async move {
            let mut new = (self.change)(old.cloned().unwrap_or_default())?;
            self.store.set_defaults(&mut new);
            self.stores.manage(self.store, self.options, old, &mut new).await;
            Ok(new)
        })
    }
}

impl Store {
    /// The strategy for a write of the object ("") or through a subresource of it.
    ///
    /// # Errors
    /// 404 when no such subresource writes the object.
    pub fn strategy(&self, subresource: &str) -> Result<&dyn Strategy, Status> {
        if subresource.is_empty() {
            return Ok(&*self.resource().strategy);
        }
        match self.resource().subresource(subresource).map(|subresource| &subresource.kind) {
            Some(SubresourceKind::Object { strategy, .. }) => Ok(&**strategy),
            Some(SubresourceKind::Scale(_)) => Ok(&*self.resource().strategy),
            // A creater has its own rules (a binding sets fields that no update may change).
            Some(SubresourceKind::Create { .. }) => Ok(&DefaultStrategy),
            _ => Err(Status::no_such_resource()),
        }
    }
}

/// An LRU cache of decoded objects that admission reads often: namespaces, service accounts, classes. An entry is valid
/// while its object is the cached one.
struct DecodedObjects(parking_lot::Mutex<KeptObjects>);

struct KeptObjects {
    by_key: LruCache<pintle_storage::Key, Decoded>,
    /// The total size of their JSON.
    bytes: usize,
}

/// A cached object and its tree.
type Decoded = (Arc<CachedObject>, Arc<Value>);

impl Default for DecodedObjects {
    fn default() -> DecodedObjects {
        let kept = KeptObjects { by_key: LruCache::new_unbounded(), bytes: 0 };
        DecodedObjects(parking_lot::Mutex::new(kept))
    }
}

impl DecodedObjects {
    /// The capacity in bytes of JSON: some ten thousand namespaces. The trees take several times as much memory.
    const CAPACITY: usize = 8 << 20;

    fn get(&self, store: &Store, cached: &Arc<CachedObject>) -> Option<Arc<Value>> {
        if let Some((of, value)) = self.0.lock().by_key.get(cached.key())
            && Arc::ptr_eq(of, cached)
        {
            return Some(value.clone());
        }
        // Not under the lock: decoding takes time in proportion to the object's size.
        let value = Arc::new(store.stored_tree(cached.json()).ok()?);
        self.0.lock().insert(cached, value.clone());
        Some(value)
    }
}

impl KeptObjects {
    fn insert(&mut self, cached: &Arc<CachedObject>, value: Arc<Value>) {
        self.bytes += cached.json().len();
        let mut gone = self.by_key.insert(cached.key().clone(), (cached.clone(), value));
        loop {
            if let Some((cached, _)) = gone {
                self.bytes = self.bytes.saturating_sub(cached.json().len());
            }
            if self.bytes <= DecodedObjects::CAPACITY {
                return;
            }
            match self.by_key.remove_lru() {
                Some((_, decoded)) => gone = Some(decoded),
                None => return,
            }
        }
    }
}

impl Lister for Stores {
    fn get(&self, resource: &GroupResource, namespace: &str, name: &str) -> Option<Arc<Value>> {
        let store = self.find_store(resource)?;
        let snapshot = store.cacher().current()?;
        let cached = snapshot.get(&store.key(namespace, name))?;
        self.decoded.get(&store, cached)
    }

    fn list(&self, resource: &GroupResource, namespace: &str) -> Option<Vec<Arc<Value>>> {
        let store = self.find_store(resource)?;
        let snapshot = store.cacher().current()?;
        let prefix = store.key_prefix(namespace);
        snapshot.range(&prefix, None).map(|object| self.decoded.get(&store, object)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_cacher::DecodedObject;
    use pintle_storage::{Key, Revision};

    fn cached(name: usize, revision: u64, bytes: usize) -> Arc<CachedObject> {
        let decoded = DecodedObject {
            json: vec![b'x'; bytes].into(),
            namespace: "".into(),
            name: name.to_string().as_str().into(),
            selectable: Arc::default(),
        };
        Arc::new(CachedObject::new(Key::new(format!("/{name:06}")), Revision(revision), decoded))
    }

    /// Many large namespaces that admission reads take bounded memory.
    #[test]
    fn decoded_objects_are_kept_up_to_their_bytes() {
        let decoded = DecodedObjects::default();
        let mut kept = decoded.0.lock();
        let value = Arc::new(Value::Null);
        let size = DecodedObjects::CAPACITY / 10;
        for name in 0..100 {
            kept.insert(&cached(name, 1, size), value.clone());
            // The first object is read all the time.
            assert!(kept.by_key.get(&Key::new("/000000")).is_some());
        }
        let names: Vec<_> = kept.by_key.iter().map(|(key, _)| key.as_str().to_owned()).collect();
        assert_eq!((names.len(), kept.bytes), (10, 10 * size));
        assert!(names.contains(&"/000000".to_owned()) && names.contains(&"/000099".to_owned()), "{names:?}");
        // Another revision replaces the one before it.
        for revision in 2..100 {
            kept.insert(&cached(99, revision, size), value.clone());
        }
        assert_eq!((kept.by_key.len(), kept.bytes), (10, 10 * size));
        // An object larger than the capacity is not cached.
        kept.insert(&cached(100, 1, DecodedObjects::CAPACITY + 1), value);
        assert_eq!((kept.by_key.len(), kept.bytes), (0, 0));
    }
}
