//! One stored resource.

use super::{
    StorageFactory,
    codec::{ObjectCodec, TypeSchema},
    storage_codec::StorageCodec,
    versions::{self, Versions},
};
use crate::errors;
use bytes::Bytes;
use pintle_cacher::{CachedObject, Cacher, CacherConfig, Freshness, Snapshot, TriggerField};
use pintle_machinery::{
    GroupKind, GroupResource, Status, Value, ValueExt,
    codec::{MAX_DEPTH, json, protobuf},
    error_list::quote,
    tree,
    validation::validate_path_segment_name,
};
use pintle_registry::{Resource, StorageEncoding};
use pintle_schema::default_by_schema;
use pintle_storage::{Key, ReadError, Revision, Storage};
use pintle_supervisor::Supervisor;
use std::sync::Arc;

/// What a store is made of.
pub struct StoreConfig {
    /// The declaration, in the storage version.
    pub resource: Arc<Resource>,
    /// Those of all versions of a custom resource, this one among them. None for other resources.
    pub versions: Vec<Arc<Resource>>,
    /// Where and how it is stored.
    pub storage: Arc<StorageFactory>,
}

/// Reads and writes the objects of one resource, in the storage version: the generic registry store. What is
/// particular to the kind it asks the strategy.
pub struct Store {
    pub(super) resource: Arc<Resource>,
    pub(super) group_resource: GroupResource,
    pub(super) group_kind: GroupKind,
    pub(super) schema: TypeSchema,
    pub(super) codec: Arc<ObjectCodec>,
    storage_codec: Arc<StorageCodec>,
    unsafe_deletes: bool,
    storage_prefix: Arc<str>,
    pub(super) storage: Arc<dyn Storage>,
    pub(super) cacher: Arc<Cacher>,
    prefix: Arc<str>,
    type_meta: Bytes,
    /// Where there are several versions of a custom resource, that of this store among them, and the stored one.
    versions: Option<Arc<Versions>>,
    stored: Arc<Resource>,
    stored_schema: TypeSchema,
}

/// An object on its way to the engine.
pub(super) struct Encoded {
    /// The registry's bytes for it, of which the stored ones are made.
    pub(super) bytes: Bytes,
    /// The object as it will be read, where that is not as it is written.
    shown: Option<Value>,
    /// What is stored, where that is not what is read.
    stored: Option<Bytes>,
}

/// An object that was written, or would have been if the request were no dry run.
pub struct Written {
    /// The tree, without resourceVersion in a dry run.
    pub object: Value,
    /// The final JSON.
    pub json: Bytes,
}

impl Store {
    /// A store and its cacher, which starts to fill at once.
    ///
    /// # Errors
    /// When the declaration names a type that the schema does not have.
    pub fn start(config: StoreConfig, supervisor: &Supervisor) -> Result<Arc<Store>, String> {
        let StoreConfig { resource, versions, storage } = config;
        let schema = TypeSchema::of(&resource).ok_or_else(|| {
            format!("no schema for {} of {}", resource.type_name, resource.resource.resource)
        })?;
        let prefix: Arc<str> = format!("{}/{}/", storage.prefix(), resource.storage.path).into();
        let codec = Arc::new(ObjectCodec::new(&resource, schema.clone(), prefix.clone()));
        let read_source = storage.read_source_of(&resource);
        let log_budget = storage.log_budget().clone();
        let (unsafe_deletes, storage_prefix) = (storage.has_unsafe_deletes(), storage.prefix().into());
        let versions = Versions::new(&resource, &versions).map(Arc::new);
        let (storage, storage_codec) = storage.storage(&resource, &schema, &codec, versions.clone());
        let group_resource = resource.group_resource();
        let mut cacher = CacherConfig::new(group_resource.to_string(), prefix.clone(), codec.clone());
        cacher.read_source = read_source;
        cacher.log_budget = log_budget;
        // A revision from before a custom resource was served as it is says nothing of its objects.
        cacher.resume_from_storage = !schema.is_custom();
        cacher.triggers = resource
            .selectable_fields
            .iter()
            .enumerate()
            .filter(|(_, field)| field.trigger)
            .map(|(index, field)| TriggerField { name: field.name.as_str().into(), index })
            .collect();
        let cacher = Cacher::start(storage.clone(), cacher, supervisor);
        let kind = resource.group_version_kind();
        let type_meta = match schema.is_custom() {
            true => "{".to_owned(),
            false => {
                format!("{{\"kind\":\"{}\",\"apiVersion\":\"{}\",", kind.kind, kind.group_version())
            }
        };
        Ok(Arc::new(Store {
            group_kind: kind.group_kind(),
            group_resource,
            codec,
            storage_codec,
            unsafe_deletes,
            storage_prefix,
            storage,
            cacher,
            prefix,
            type_meta: type_meta.into(),
            versions,
            stored: resource.clone(),
            stored_schema: schema.clone(),
            schema,
            resource,
        }))
    }

    /// The same store as another version of a custom resource sees it: with the rules and the schema of that version.
    /// Objects are converted on their way in and out. `None` when nobody says how.
    pub fn in_version(&self, resource: Arc<Resource>) -> Option<Arc<Store>> {
        Some(Arc::new(Store {
            group_kind: resource.group_version_kind().group_kind(),
            group_resource: resource.group_resource(),
            schema: TypeSchema::of(&resource)?,
            codec: self.codec.clone(),
            storage_codec: self.storage_codec.clone(),
            unsafe_deletes: self.unsafe_deletes,
            storage_prefix: self.storage_prefix.clone(),
            storage: self.storage.clone(),
            cacher: self.cacher.clone(),
            prefix: self.prefix.clone(),
            type_meta: self.type_meta.clone(),
            resource,
            versions: Some(self.versions.clone()?),
            stored: self.stored.clone(),
            stored_schema: self.stored_schema.clone(),
        }))
    }

    /// Ends the watches of a store that another one has replaced, or whose resource is gone. Requests that are under way
    /// end as they would; the cache goes with the last of them.
    pub fn retire(&self) {
        self.cacher.end_watches();
    }

    /// The declaration.
    pub fn resource(&self) -> &Resource {
        &self.resource
    }

    /// The group and resource.
    pub fn group_resource(&self) -> &GroupResource {
        &self.group_resource
    }

    /// The schema of the storage version.
    pub fn schema(&self) -> &TypeSchema {
        &self.schema
    }

    /// The watch cache.
    pub fn cacher(&self) -> &Arc<Cacher> {
        &self.cacher
    }

    /// The engine, behind what makes the stored form of values.
    pub fn storage(&self) -> &Arc<dyn Storage> {
        &self.storage
    }

    /// The start of every object's JSON that lists leave out of their items: up to and with the comma behind the
    /// apiVersion. Items of custom resources lack nothing but the brace, which every item gets.
    pub fn type_meta(&self) -> &Bytes {
        &self.type_meta
    }

    /// The key of an object.
    pub fn key(&self, namespace: &str, name: &str) -> Key {
        match self.resource.is_namespaced() {
            true => Key::new([&self.prefix, namespace, "/", name].concat()),
            false => Key::new([&self.prefix, name].concat()),
        }
    }

    /// The key of an object that a client names.
    ///
    /// # Errors
    /// 400 for a name that no object can have, since it would lead to another key.
    pub fn object_key(&self, namespace: &str, name: &str) -> Result<Key, Status> {
        let problems = validate_path_segment_name(name, false);
        if !problems.is_empty() {
            return Err(Status::bad_request(format!(
                "Name parameter invalid: {}: {}",
                quote(name),
                problems.join(";")
            )));
        }
        Ok(self.key(namespace, name))
    }

    /// The prefix of the keys of a namespace; "" is all of them.
    pub fn key_prefix(&self, namespace: &str) -> String {
        match self.resource.is_namespaced() && !namespace.is_empty() {
            true => [&self.prefix, namespace, "/"].concat(),
            false => self.prefix.to_string(),
        }
    }

    /// Fills in what a client or an older server left out.
    pub fn set_defaults(&self, object: &mut Value) {
        // What a custom resource's schema has to say, its strategy says.
        if !self.schema.is_custom() {
            default_by_schema(object, self.schema.get());
        }
        self.resource.strategy.set_defaults(object);
    }

    /// The object of a key, as fresh as asked.
    ///
    /// # Errors
    /// 500 when there is one that cannot be read, besides the failures of the cache.
    pub async fn find(&self, key: &Key, freshness: Freshness) -> Result<Option<Arc<CachedObject>>, Status> {
        let snapshot = self.cacher.snapshot_of(key, freshness).await.map_err(errors::cacher)?;
        match (snapshot.get(key), snapshot.unreadable(key)) {
            (None, Some(unreadable)) => Err(self.unreadable(key, unreadable.revision, &unreadable.error)),
            (object, _) => Ok(object.cloned()),
        }
    }

    /// Whoever acts on there being no more objects than those of a list must not do so while some cannot be read.
    ///
    /// # Errors
    /// 500 when an object with the prefix cannot be read.
    pub fn require_readable(&self, snapshot: &Snapshot, prefix: &str) -> Result<(), Status> {
        match snapshot.unreadable_range(prefix).next() {
            Some((key, unreadable)) => Err(self.unreadable(key, unreadable.revision, &unreadable.error)),
            None => Ok(()),
        }
    }

    /// 500 for an object whose stored value cannot be read.
    pub fn unreadable(&self, key: &Key, revision: Revision, error: &ReadError) -> Status {
        if self.unsafe_deletes {
            let what = match error {
                ReadError::Transform(error) => {
                    format!("data from the storage is not transformable revision=0: {error}")
                }
                ReadError::Decode(error) => format!("object not decodable revision={revision}: {error}"),
            };
            let key = key.as_str().strip_prefix(&*self.storage_prefix).unwrap_or(key.as_str());
            return Status::internal_error(format!(
                "StorageError: corrupt object, Code: 7, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: {what}"
            ));
        }
        match error {
            ReadError::Transform(error) => Status::internal_error(error),
            ReadError::Decode(error) => Status::unknown(error.to_string()),
        }
    }

    /// The tree of a cached or stored object in the version of this store, defaulted.
    pub(super) async fn tree(&self, json: &[u8]) -> Result<Value, Status> {
        match &self.versions {
            Some(versions) => versions.read(json, &self.resource, &self.schema).await,
            None => self.stored_tree(json),
        }
    }

    /// The tree of a cached object in the version of this store, as clients see it.
    ///
    /// # Errors
    /// 500 when it cannot be read or converted.
    pub async fn version_tree(&self, json: &[u8]) -> Result<Value, Status> {
        match &self.versions {
            Some(_) => self.tree(json).await,
            None => json::decode_any(json).map_err(errors::internal),
        }
    }

    /// The tree of a cached object in the version that it is cached in, defaulted.
    pub(super) fn stored_tree(&self, json: &[u8]) -> Result<Value, Status> {
        if self.schema.is_custom() {
            // The defaults have come in when it was read from storage.
            return json::decode_any(json).map_err(errors::internal);
        }
        let mut tree = self.codec.decode_tree(json).map_err(errors::internal)?;
        self.set_defaults(&mut tree);
        Ok(tree)
    }

    /// Takes out of a new tree what is not kept of it, once it is known who owns what: kinds that are stored as messages
    /// keep no empty lists. That holds whatever the media type of stored objects is, so that clients need not know.
    pub(super) fn drop_unkept(&self, object: &mut Value) {
        if matches!(self.resource.storage.encoding, StorageEncoding::Configured) && !self.schema.is_custom() {
            protobuf::drop_empty(object, self.schema.get());
        }
    }

    /// The bytes to store for a tree. Who reads a custom resource finds defaults of the storage version also where they are
    /// not stored: in what was written through another version, and in a status that nobody has written yet.
    pub(super) async fn encode(&self, object: &mut Value) -> Result<Encoded, Status> {
        if let Some(metadata) = object.at_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("resourceVersion");
        }
        let Some(versions) = self.versions.as_ref().filter(|_| !Arc::ptr_eq(&self.resource, &self.stored))
        else {
            let stored = self.encode_readable(object)?;
            if self.schema.is_custom() && self.schema.get().has_defaults() {
                let mut shown = object.clone();
                self.stored.strategy.set_defaults(&mut shown);
                if shown != *object {
                    let bytes = self.encode_readable(&shown)?;
                    return Ok(Encoded { bytes, shown: Some(shown), stored: Some(stored) });
                }
            }
            return Ok(Encoded { bytes: stored, shown: None, stored: None });
        };
        let mut shown = versions.convert(object.clone(), &self.stored, &self.stored_schema).await?;
        let stored = self.encode_readable(&shown)?;
        self.stored.strategy.set_defaults(&mut shown);
        let bytes = self.encode_readable(&shown)?;
        Ok(Encoded { bytes, shown: Some(shown), stored: Some(stored) })
    }

    /// The bytes of a tree that can be read back: what the server adds (managed fields, defaults, a conversion) may have made
    /// it deeper than what was sent.
    fn encode_readable(&self, object: &Value) -> Result<Bytes, Status> {
        if tree::depth(object) > MAX_DEPTH {
            return Err(Status::bad_request("the object exceeded max depth"));
        }
        Ok(self.codec.encode(object))
    }

    /// Says that these bytes, made of this tree, are about to be written.
    pub(super) fn announce(&self, encoded: &Encoded, object: &Value) {
        self.codec.announce(&encoded.bytes, encoded.shown.as_ref().unwrap_or(object));
        match &encoded.stored {
            Some(stored) => self.storage_codec.prepare_bytes(&encoded.bytes, stored.clone()),
            None => self.storage_codec.prepare(&encoded.bytes, object),
        }
    }

    /// What a write made of the tree.
    pub(super) async fn written(
        &self,
        mut object: Value,
        encoded: &Encoded,
        revision: Option<Revision>,
    ) -> Result<Written, Status> {
        if let Some(shown) = &encoded.shown {
            object = shown.clone();
        }
        if let Some(versions) = self.versions.as_ref().filter(|_| !Arc::ptr_eq(&self.resource, &self.stored))
        {
            // What the storage version does not have is lost, and the client is to see that.
            object = versions.convert(object, &self.resource, &self.schema).await?;
            if let Some(revision) = revision {
                object.set("metadata.resourceVersion", revision.to_string());
            }
            let json = versions::encode(&object, &self.schema);
            return Ok(Written { object, json });
        }
        let json = match revision {
            Some(revision) => {
                object.set("metadata.resourceVersion", revision.to_string());
                super::splice_revision(&encoded.bytes, revision)
                    .ok_or_else(|| Status::internal_error("object without metadata"))?
            }
            None => encoded.bytes.clone(),
        };
        Ok(Written { object, json })
    }

    /// What a refusal calls the kind of an object: a custom resource's body may say that it is of another one, and
    /// is refused for that.
    pub(super) fn kind_of(&self, object: &Value) -> GroupKind {
        match self.schema.is_custom() {
            true => GroupKind::new(self.group_kind.group.as_str(), object.str_at("kind")),
            false => self.group_kind.clone(),
        }
    }

    /// Whether the object is in the namespace that the request is about.
    pub(super) fn check_namespace(&self, object: &mut Value, namespace: &str) -> Result<(), Status> {
        let own = object.str_at("metadata.namespace");
        if !self.resource.is_namespaced() {
            return Ok(());
        }
        if own.is_empty() {
            object.set("metadata.namespace", namespace);
            return Ok(());
        }
        if own != namespace {
            return Err(Status::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        Ok(())
    }
}
