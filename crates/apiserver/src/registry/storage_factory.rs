//! Configures the storage of each resource: its engine, its media type, its encryption.

use super::{
    DeclarationError, ObjectCodec, TypeSchema,
    storage_codec::{StorageCodec, StorageMediaType},
    versions::Versions,
};
use pintle_cacher::{ByteBudget, ReadSource};
use pintle_machinery::GroupResource;
use pintle_registry::Resource;
use pintle_storage::{Storage, TransformedStorage, ValueTransformer};
use std::{collections::HashMap, sync::Arc};

/// Selects the encryption of each resource.
pub trait ResourceTransformers: Send + Sync {
    /// The transformer of the resource's values; `None` stores them in the clear. Called once per resource.
    fn transformer_for(&self, resource: &GroupResource) -> Option<Arc<dyn ValueTransformer>>;
}

/// Learns where resources are stored, such as for metrics of requests that go by keys.
pub trait StorageObserver: Send + Sync {
    /// The keys of the resource begin with the prefix. Called for each resource before its storage is used, and again when a
    /// custom resource is served anew.
    fn stored(&self, prefix: &str, resource: &GroupResource);
}

/// An engine, and whether this server is the only one that writes to it.
#[derive(Clone)]
pub struct Engine {
    /// The engine.
    pub storage: Arc<dyn Storage>,
    /// Whether no other server writes to it. Values that begin like this server's own JSON are then not decoded.
    pub exclusive: bool,
}

/// The storage configuration of every resource. Resources go by the group they are stored in: events by the core group.
pub struct StorageFactory {
    prefix: String,
    engine: Engine,
    engines: HashMap<GroupResource, Engine>,
    media_type: Option<StorageMediaType>,
    maps_as_cbor: bool,
    encryption: Option<Arc<dyn ResourceTransformers>>,
    read_source: ReadSource,
    read_sources: HashMap<GroupResource, ReadSource>,
    unsafe_deletes: bool,
    garbage_collection: bool,
    log_budget: ByteBudget,
    open_budget: ByteBudget,
    queue_budget: ByteBudget,
    held_budget: ByteBudget,
    observer: Option<Arc<dyn StorageObserver>>,
}

impl StorageFactory {
    /// Stores all resources in one engine, below a prefix such as `/registry`.
    pub fn new(engine: Engine, prefix: impl Into<String>) -> StorageFactory {
        StorageFactory {
            prefix: prefix.into(),
            engine,
            engines: HashMap::new(),
            media_type: None,
            maps_as_cbor: false,
            encryption: None,
            read_source: ReadSource::default(),
            read_sources: HashMap::new(),
            unsafe_deletes: false,
            garbage_collection: true,
            log_budget: ByteBudget::of_logs(),
            open_budget: ByteBudget::of_open_objects(),
            queue_budget: ByteBudget::of_queues(),
            held_budget: ByteBudget::of_held_states(),
            observer: None,
        }
    }

    /// The media type of new writes. The default, `None`, is JSON, of which an exclusive engine needs no copy, and
    /// protobuf in a shared engine, as the other servers write it.
    pub fn media_type(mut self, media_type: Option<StorageMediaType>) -> StorageFactory {
        self.media_type = media_type;
        self
    }

    /// Writes objects that are stored as written in CBOR instead of JSON (feature gate `CBORServingAndStorage`). Both
    /// forms are read in either case.
    pub fn maps_as_cbor(mut self, maps_as_cbor: bool) -> StorageFactory {
        self.maps_as_cbor = maps_as_cbor;
        self
    }

    /// Allows the delete of unreadable objects (feature gate `AllowUnsafeMalformedObjectDeletion`). Error messages then
    /// identify those objects.
    pub fn unsafe_deletes(mut self, unsafe_deletes: bool) -> StorageFactory {
        self.unsafe_deletes = unsafe_deletes;
        self
    }

    /// Whether deletes set the finalizers by which the garbage collector carries out the propagation policy.
    pub fn garbage_collection(mut self, garbage_collection: bool) -> StorageFactory {
        self.garbage_collection = garbage_collection;
        self
    }

    pub(super) fn has_garbage_collection(&self) -> bool {
        self.garbage_collection
    }

    /// The memory budget that the states share that slow readers of lists and watches hold. Beyond it, their responses
    /// break off.
    pub fn held_states(mut self, budget: ByteBudget) -> StorageFactory {
        self.held_budget = budget;
        self
    }

    /// Stores one resource in another engine; the resource `*` stands for all resources of the group.
    pub fn resource_engine(mut self, resource: GroupResource, engine: Engine) -> StorageFactory {
        self.engines.insert(resource, engine);
        self
    }

    /// The source of reads: the watch cache or the store, as far as clients can tell.
    pub fn read_source(mut self, read_source: ReadSource) -> StorageFactory {
        self.read_source = read_source;
        self
    }

    /// Overrides the source of reads for one resource.
    pub fn resource_read_source(
        mut self,
        resource: GroupResource,
        read_source: ReadSource,
    ) -> StorageFactory {
        self.read_sources.insert(resource, read_source);
        self
    }

    /// Sets the encryption of values at rest.
    pub fn encryption(mut self, encryption: Arc<dyn ResourceTransformers>) -> StorageFactory {
        self.encryption = Some(encryption);
        self
    }

    /// Tells the observer where each resource is stored.
    pub fn observer(mut self, observer: Arc<dyn StorageObserver>) -> StorageFactory {
        self.observer = Some(observer);
        self
    }

    /// The prefix of all keys.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The memory budget that the event logs of all resources share.
    pub(super) fn log_budget(&self) -> &ByteBudget {
        &self.log_budget
    }

    /// The memory budget that the JSON of the open objects of all resources shares.
    pub(super) fn open_budget(&self) -> &ByteBudget {
        &self.open_budget
    }

    /// The memory budget that the queues of all watchers share.
    pub(super) fn queue_budget(&self) -> &ByteBudget {
        &self.queue_budget
    }

    /// The memory budget that the states share that readers hold.
    pub(super) fn held_budget(&self) -> &ByteBudget {
        &self.held_budget
    }

    /// Whether unreadable objects can be deleted.
    pub(super) fn has_unsafe_deletes(&self) -> bool {
        self.unsafe_deletes
    }

    /// Whether other servers may write to the default engine.
    pub fn is_shared(&self) -> bool {
        !self.engine.exclusive
    }

    /// The storage of a resource that has no store since its values are not whole objects. Values are JSON.
    ///
    /// # Errors
    /// When the schema does not have the declaration's type.
    pub fn plain_storage(&self, resource: Resource) -> Result<Arc<dyn Storage>, DeclarationError> {
        let schema =
            TypeSchema::builtin(&resource.type_name).ok_or_else(|| DeclarationError::no_schema(&resource))?;
        let codec = Arc::new(ObjectCodec::new(&resource, schema.clone(), self.prefix_of(&resource).into()));
        Ok(self.storage(&Arc::new(resource), &schema, &codec, None).0)
    }

    /// The prefix of a resource's keys.
    pub(super) fn prefix_of(&self, resource: &Resource) -> String {
        format!("{}/{}/", self.prefix, resource.storage.path)
    }

    /// The source of a resource's reads.
    pub(super) fn read_source_of(&self, resource: &Resource) -> ReadSource {
        *configured(&self.read_sources, &stored_as(resource)).unwrap_or(&self.read_source)
    }

    /// The storage of a resource, with the registry's JSON as values, and the codec to the stored bytes.
    pub(super) fn storage(
        &self,
        resource: &Arc<Resource>,
        schema: &TypeSchema,
        codec: &Arc<ObjectCodec>,
        versions: Option<Arc<Versions>>,
    ) -> (Arc<dyn Storage>, Arc<StorageCodec>) {
        if let Some(observer) = &self.observer {
            observer.stored(&self.prefix_of(resource), &resource.group_resource());
        }
        let stored = stored_as(resource);
        let Engine { storage, exclusive } =
            configured(&self.engines, &stored).unwrap_or(&self.engine).clone();
        let default = match exclusive {
            true => StorageMediaType::Json,
            false => StorageMediaType::Protobuf,
        };
        let media_type = self.media_type.unwrap_or(default);
        // As in kube-apiserver: resources that are not served are stored in the clear, whatever the encryption rules.
        let encryption = self.encryption.as_ref().filter(|_| !resource.verbs.is_empty());
        let encryption = encryption.and_then(|encryption| encryption.transformer_for(&stored));
        let codec = Arc::new(StorageCodec::new(
            media_type,
            self.maps_as_cbor,
            exclusive,
            resource.clone(),
            schema.clone(),
            codec.clone(),
            versions,
        ));
        let mut transformers: Vec<Arc<dyn ValueTransformer>> = vec![codec.clone()];
        transformers.extend(encryption);
        (Arc::new(TransformedStorage::new(storage, transformers)), codec)
    }
}

/// The group and name under which a resource is stored.
fn stored_as(resource: &Resource) -> GroupResource {
    GroupResource::new(resource.storage.kind.group.clone(), resource.resource.resource.clone())
}

/// The setting of a resource, or else of its group.
fn configured<'a, T>(all: &'a HashMap<GroupResource, T>, resource: &GroupResource) -> Option<&'a T> {
    all.get(resource).or_else(|| all.get(&GroupResource::new(resource.group.clone(), "*")))
}
