//! Where and how each resource is stored: its engine, its media type, its encryption.

use super::{
    ObjectCodec, TypeSchema,
    storage_codec::{StorageCodec, StorageMediaType},
    versions::Versions,
};
use pintle_cacher::{LogBudget, ReadSource};
use pintle_machinery::GroupResource;
use pintle_registry::Resource;
use pintle_storage::{Storage, TransformedStorage, ValueTransformer};
use std::{collections::HashMap, sync::Arc};

/// Tells which resources are encrypted.
pub trait ResourceTransformers: Send + Sync {
    /// What encrypts the resource's values, if anything does. Asked once for each resource.
    fn transformer_for(&self, resource: &GroupResource) -> Option<Arc<dyn ValueTransformer>>;
}

/// An engine, and whether this server is the only one that writes to it.
#[derive(Clone)]
pub struct Engine {
    /// The engine.
    pub storage: Arc<dyn Storage>,
    /// Whether nobody else writes to it. What begins like this server's own JSON is then taken for that.
    pub exclusive: bool,
}

/// Answers for every resource with what is configured for it. Resources are named as they are stored: events by the core
/// group's name.
pub struct StorageFactory {
    prefix: String,
    engine: Engine,
    engines: HashMap<GroupResource, Engine>,
    media_type: Option<StorageMediaType>,
    encryption: Option<Arc<dyn ResourceTransformers>>,
    read_source: ReadSource,
    read_sources: HashMap<GroupResource, ReadSource>,
    unsafe_deletes: bool,
    log_budget: LogBudget,
}

impl StorageFactory {
    /// Everything in one engine, below a prefix such as `/registry`.
    pub fn new(engine: Engine, prefix: impl Into<String>) -> StorageFactory {
        StorageFactory {
            prefix: prefix.into(),
            engine,
            engines: HashMap::new(),
            media_type: None,
            encryption: None,
            read_source: ReadSource::default(),
            read_sources: HashMap::new(),
            unsafe_deletes: false,
            log_budget: LogBudget::default(),
        }
    }

    /// The media type of what is written from now on; `None` is JSON, of which an engine of the server's own needs no
    /// copy, and protobuf in one that others share, as they write it.
    pub fn media_type(mut self, media_type: Option<StorageMediaType>) -> StorageFactory {
        self.media_type = media_type;
        self
    }

    /// Lets objects be deleted that cannot be read (feature gate `AllowUnsafeMalformedObjectDeletion`). Errors then say
    /// which objects those are.
    pub fn unsafe_deletes(mut self, unsafe_deletes: bool) -> StorageFactory {
        self.unsafe_deletes = unsafe_deletes;
        self
    }

    /// Another engine for one resource, or with `*` for a group's resources.
    pub fn resource_engine(mut self, resource: GroupResource, engine: Engine) -> StorageFactory {
        self.engines.insert(resource, engine);
        self
    }

    /// Where reads are answered from: whether there is a watch cache, as far as clients can tell.
    pub fn read_source(mut self, read_source: ReadSource) -> StorageFactory {
        self.read_source = read_source;
        self
    }

    /// Another answer to that for one resource.
    pub fn resource_read_source(
        mut self,
        resource: GroupResource,
        read_source: ReadSource,
    ) -> StorageFactory {
        self.read_sources.insert(resource, read_source);
        self
    }

    /// Encrypts.
    pub fn encryption(mut self, encryption: Arc<dyn ResourceTransformers>) -> StorageFactory {
        self.encryption = Some(encryption);
        self
    }

    /// The prefix of all keys.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// What the event logs of all resources share.
    pub(super) fn log_budget(&self) -> &LogBudget {
        &self.log_budget
    }

    /// Whether objects can be deleted that cannot be read.
    pub(super) fn has_unsafe_deletes(&self) -> bool {
        self.unsafe_deletes
    }

    /// Whether other servers may write to the default engine.
    pub fn is_shared(&self) -> bool {
        !self.engine.exclusive
    }

    /// The storage of a resource that has no store, since its values are no whole objects. It speaks JSON.
    ///
    /// # Errors
    /// When the declaration names a type that the schema does not have.
    pub fn plain_storage(&self, resource: Resource) -> Result<Arc<dyn Storage>, String> {
        let schema = TypeSchema::builtin(&resource.type_name)
            .ok_or_else(|| format!("no schema for {}", resource.type_name))?;
        let prefix = format!("{}/{}/", self.prefix, resource.storage.path);
        let codec = Arc::new(ObjectCodec::new(&resource, schema.clone(), prefix.into()));
        Ok(self.storage(&Arc::new(resource), &schema, &codec, None).0)
    }

    /// Where reads of a resource are answered from.
    pub(super) fn read_source_of(&self, resource: &Resource) -> ReadSource {
        *configured(&self.read_sources, &stored_as(resource)).unwrap_or(&self.read_source)
    }

    /// The storage of a resource, which speaks the registry's JSON, and what stands between that and the stored bytes.
    pub(super) fn storage(
        &self,
        resource: &Arc<Resource>,
        schema: &TypeSchema,
        codec: &Arc<ObjectCodec>,
        versions: Option<Arc<Versions>>,
    ) -> (Arc<dyn Storage>, Arc<StorageCodec>) {
        let stored = stored_as(resource);
        let Engine { storage, exclusive } =
            configured(&self.engines, &stored).unwrap_or(&self.engine).clone();
        let default = match exclusive {
            true => StorageMediaType::Json,
            false => StorageMediaType::Protobuf,
        };
        let media_type = self.media_type.unwrap_or(default);
        // As kube-apiserver, which reads it so: what no client is served is stored in the clear, whatever the rules say.
        let encryption = self.encryption.as_ref().filter(|_| !resource.verbs.is_empty());
        let encryption = encryption.and_then(|encryption| encryption.transformer_for(&stored));
        let codec = Arc::new(StorageCodec::new(
            media_type,
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

/// The name of a resource as it is stored.
fn stored_as(resource: &Resource) -> GroupResource {
    GroupResource::new(resource.storage.kind.group.clone(), resource.resource.resource.clone())
}

/// What is configured for the resource, or else for its group.
fn configured<'a, T>(all: &'a HashMap<GroupResource, T>, resource: &GroupResource) -> Option<&'a T> {
    all.get(resource).or_else(|| all.get(&GroupResource::new(resource.group.clone(), "*")))
}
