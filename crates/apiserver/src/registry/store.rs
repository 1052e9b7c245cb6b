//! The generic registry store: reads and writes one stored resource.

use super::{
    DeclarationError, StorageFactory,
    codec::{ObjectCodec, TypeSchema},
    storage_codec::StorageCodec,
    versions::{self, Versions},
};
use crate::errors;
use bytes::Bytes;
use pintle_cacher::{ByteBudget, CachedObject, Cacher, CacherConfig, Freshness, Snapshot, TriggerField};
use pintle_go_forms::quote;
use pintle_machinery::{
    GroupKind, GroupResource, GroupVersion, Status, Value, ValueExt,
    codec::{MAX_DEPTH, json, protobuf},
    tree,
    validation::validate_path_segment_name,
};
use pintle_registry::{
    DefaultStrategy, EmptyFields, RequestContext, Resource, StorageEncoding, Strategy, SubresourceKind,
};
use pintle_schema::default_by_schema;
use pintle_storage::{Key, Payload, ReadError, Revision, Storage};
use pintle_supervisor::Supervisor;
use std::sync::Arc;

/// The configuration of a store.
pub struct StoreConfig {
    /// The declaration, in the storage version.
    pub resource: Arc<Resource>,
    /// The declarations of all versions that objects may be stored in as written, this one among them; empty for a
    /// resource whose objects are stored in one version.
    pub versions: Vec<Arc<Resource>>,
    /// The storage configuration.
    pub storage: Arc<StorageFactory>,
}

/// Reads and writes the objects of one resource, in the storage version. The strategy has the rules that are particular
/// to the kind.
pub struct Store {
    pub(super) resource: Arc<Resource>,
    pub(super) group_resource: GroupResource,
    pub(super) group_kind: GroupKind,
    pub(super) schema: TypeSchema,
    pub(super) codec: Arc<ObjectCodec>,
    storage_codec: Arc<StorageCodec>,
    unsafe_deletes: bool,
    pub(super) garbage_collection: bool,
    storage_prefix: Arc<str>,
    pub(super) storage: Arc<dyn Storage>,
    pub(super) cacher: Arc<Cacher>,
    prefix: Arc<str>,
    type_meta: Bytes,
    /// The versions between which objects are converted on reads and writes, and the stored one.
    versions: Option<Arc<Versions>>,
    stored: Arc<Resource>,
    stored_schema: TypeSchema,
}

/// An object that is encoded for the engine.
pub(super) struct Encoded {
    /// The registry's bytes, from which the stored bytes are made.
    pub(super) bytes: Bytes,
    /// The object as reads will return it, where that differs from the written tree.
    pub(super) shown: Option<Value>,
    /// The stored bytes, where they differ from `bytes`.
    stored: Option<Bytes>,
}

/// An object that was written, or would have been written in a dry run.
pub struct Written {
    /// The tree, without resourceVersion in a dry run.
    pub object: Value,
    /// The final JSON.
    pub json: Bytes,
}

impl Store {
    /// Starts a store and its cacher, which fills at once.
    ///
    /// # Errors
    /// When the schema does not have the declaration's type.
    pub fn start(config: StoreConfig, supervisor: &Supervisor) -> Result<Arc<Store>, DeclarationError> {
        let StoreConfig { resource, versions, storage } = config;
        let schema = TypeSchema::of(&resource).ok_or_else(|| DeclarationError::no_schema(&resource))?;
        let prefix: Arc<str> = format!("{}/{}/", storage.prefix(), resource.storage.path).into();
        let codec = Arc::new(ObjectCodec::new(&resource, schema.clone(), prefix.clone()));
        let read_source = storage.read_source_of(&resource);
        let (log_budget, queue_budget) = (storage.log_budget().clone(), storage.queue_budget().clone());
        let held_budget = storage.held_budget().clone();
        // A converter's results are kept with the objects, and are lost when an object is packed.
        let open_budget = match resource.converter {
            Some(_) => ByteBudget::unlimited(),
            None => storage.open_budget().clone(),
        };
        let garbage_collection = storage.has_garbage_collection();
        let (unsafe_deletes, storage_prefix) = (storage.has_unsafe_deletes(), storage.prefix().into());
        let versions = Versions::new(&resource, &versions).map(Arc::new);
        let (storage, storage_codec) = storage.storage(&resource, &schema, &codec, versions.clone());
        let group_resource = resource.group_resource();
        let mut cacher = CacherConfig::new(group_resource.to_string(), prefix.clone(), codec.clone());
        cacher.read_source = read_source;
        cacher.log_budget = log_budget;
        cacher.open_budget = open_budget;
        cacher.queue_budget = queue_budget;
        cacher.held_budget = held_budget;
        // The present declaration shows objects in another form than the events before it did.
        cacher.resume_from_storage = !resource.storage.encoding.keeps_version();
        cacher.triggers = resource
            .selectable_fields
            .iter()
            .enumerate()
            .filter(|(_, field)| field.trigger)
            .map(|(index, field)| TriggerField { name: field.name.as_str().into(), index })
            .collect();
        let cacher = Cacher::start(storage.clone(), cacher, supervisor);
        let kind = resource.group_version_kind();
        let type_meta = match resource.model.lists_are_maps() {
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
            garbage_collection,
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

    /// The same store in another version of the resource, with the rules and schema of that version. Objects are
    /// converted on reads and writes. `None` when there is no converter or schema.
    pub fn in_version(&self, resource: Arc<Resource>) -> Option<Arc<Store>> {
        Some(Arc::new(Store {
            group_kind: resource.group_version_kind().group_kind(),
            group_resource: resource.group_resource(),
            schema: TypeSchema::of(&resource)?,
            codec: self.codec.clone(),
            storage_codec: self.storage_codec.clone(),
            unsafe_deletes: self.unsafe_deletes,
            garbage_collection: self.garbage_collection,
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

    /// Ends the watches of a store that was replaced, or whose resource is gone. Requests in flight finish; the cache
    /// is dropped with the last of them.
    pub fn retire(&self) {
        self.cacher.end_watches();
    }

    /// The declaration.
    pub fn resource(&self) -> &Resource {
        &self.resource
    }

    /// The strategy for a write of the object ("") or through a subresource of it.
    ///
    /// # Errors
    /// 404 when no such subresource writes the object.
    pub fn strategy(&self, subresource: &str) -> Result<&dyn Strategy, Status> {
        if subresource.is_empty() {
            return Ok(&*self.resource.strategy);
        }
        match self.resource.subresource(subresource).map(|subresource| &subresource.kind) {
            Some(SubresourceKind::Object { strategy, .. }) => Ok(&**strategy),
            Some(SubresourceKind::Scale(_)) => Ok(&*self.resource.strategy),
            // A creater has its own rules (a binding sets fields that no update may change).
            Some(SubresourceKind::Create { .. }) => Ok(&DefaultStrategy),
            _ => Err(Status::no_such_resource()),
        }
    }

    /// The group and resource.
    pub fn group_resource(&self) -> &GroupResource {
        &self.group_resource
    }

    /// The resource as the request names it: a resource may be served in several groups.
    pub(super) fn requested_resource(&self, context: &RequestContext<'_>) -> GroupResource {
        GroupResource::new(context.group_version.group.clone(), self.group_resource.resource.clone())
    }

    /// The schema of the storage version.
    pub fn schema(&self) -> &TypeSchema {
        &self.schema
    }

    /// The watch cache.
    pub fn cacher(&self) -> &Arc<Cacher> {
        &self.cacher
    }

    /// The engine behind the codec of stored forms.
    pub fn storage(&self) -> &Arc<dyn Storage> {
        &self.storage
    }

    /// The first bytes of every object's JSON that list items omit: up to and including the comma after the apiVersion.
    /// Items with type metadata omit only the brace, which the list writes for every item.
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

    /// The storage key of an object that a client names.
    ///
    /// # Errors
    /// 400 without the namespace of a namespaced resource, and for a name that is not a valid path segment, since it
    /// would lead to another key.
    pub fn object_key(&self, namespace: &str, name: &str) -> Result<Key, Status> {
        if namespace.is_empty() && self.resource.is_namespaced() {
            return Err(namespace_required());
        }
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

    /// The key prefix of a namespace; "" stands for all namespaces.
    pub fn key_prefix(&self, namespace: &str) -> String {
        match self.resource.is_namespaced() && !namespace.is_empty() {
            true => [&self.prefix, namespace, "/"].concat(),
            false => self.prefix.to_string(),
        }
    }

    /// Sets defaults that a client or an older server left out.
    pub fn set_defaults(&self, object: &mut Value) {
        if self.resource.own_schema.is_none() {
            default_by_schema(object, self.schema.get());
        }
        self.resource.strategy.set_defaults(object);
    }

    /// As [`Store::set_defaults`], on the object of a body: the lists and maps that it gives as empty do not get the
    /// defaults of absent ones.
    pub fn set_defaults_of_body(&self, object: &mut Value, empty_fields: &EmptyFields) {
        let paths = self.resource.strategy.defaults_of_absent().iter();
        let empty: Vec<&str> =
            paths.copied().filter(|path| object.at(path).is_none() && empty_fields.contains(path)).collect();
        self.set_defaults(object);
        for path in empty {
            object.remove_at(path);
        }
    }

    /// Brings an object that is about to be stored into the form in which it will be read.
    pub(super) fn complete(&self, object: &mut Value) {
        let strategy = &self.resource.strategy;
        strategy.prune(object);
        if !strategy.defaults_of_absent().is_empty() {
            strategy.set_defaults(object);
        }
    }

    /// Reads the object of a key, at the given freshness.
    ///
    /// # Errors
    /// 500 when the stored object cannot be read, and the errors of the cache.
    pub async fn find(&self, key: &Key, freshness: Freshness) -> Result<Option<Arc<CachedObject>>, Status> {
        let snapshot = self.cacher.snapshot_of(key, freshness).await.map_err(errors::cacher)?;
        match (snapshot.get(key), snapshot.unreadable(key)) {
            (None, Some(unreadable)) => Err(self.unreadable(key, unreadable.revision, &unreadable.error)),
            (object, _) => Ok(object.cloned()),
        }
    }

    /// Checks that a list is complete, for callers that act on the absence of objects.
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

    /// The defaulted tree of a cached or stored object, in the version of this store.
    ///
    /// # Errors
    /// 500 when the object cannot be decoded, and the errors of its conversion.
    pub(super) async fn tree(&self, json: &[u8]) -> Result<Value, Status> {
        match &self.versions {
            Some(versions) => versions.read(json, &self.resource, &self.schema).await,
            None => self.stored_tree(json),
        }
    }

    /// The tree of a cached object as clients see it, in the version of this store.
    ///
    /// # Errors
    /// 500 when the object cannot be decoded or converted.
    pub async fn version_tree(&self, json: &[u8]) -> Result<Value, Status> {
        match &self.versions {
            Some(_) => self.tree(json).await,
            None => json::decode_any(json).map_err(errors::internal),
        }
    }

    /// The defaulted tree of a cached object, in its cached version.
    ///
    /// # Errors
    /// 500 when the object cannot be decoded.
    pub(super) fn stored_tree(&self, json: &[u8]) -> Result<Value, Status> {
        if self.resource.storage.encoding.keeps_version() {
            // The object may be of another version; defaults were set when it was read from storage.
            let mut tree = json::decode_any(json).map_err(errors::internal)?;
            tree.get_mut("metadata").map(json::close_managed_fields);
            return Ok(tree);
        }
        let mut tree = self.codec.decode_tree(json).map_err(errors::internal)?;
        self.set_defaults(&mut tree);
        Ok(tree)
    }

    /// Removes the values of a new tree that storage does not keep, after managed fields are computed: kinds that can
    /// be stored as protobuf keep no empty lists. This holds for every storage media type, so that clients see no
    /// difference.
    pub(super) fn drop_unkept(&self, object: &mut Value) {
        if matches!(self.resource.storage.encoding, StorageEncoding::Configured) {
            protobuf::drop_empty(object, self.schema.get());
        }
    }

    /// Encodes a tree for storage. Reads of objects that are stored as written have the defaults of the storage version
    /// also where they are not stored: in objects written through another version, and in a status that was never
    /// written.
    ///
    /// # Errors
    /// 400 when the object has become too deep, and the errors of its conversion.
    pub(super) async fn encode(&self, object: &mut Value) -> Result<Encoded, Status> {
        if let Some(metadata) = object.at_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("resourceVersion");
        }
        let Some(versions) = self.versions.as_ref().filter(|_| !Arc::ptr_eq(&self.resource, &self.stored))
        else {
            let stored = self.encode_readable(object)?;
            if self.resource.storage.encoding.keeps_version() && self.schema.get().has_defaults() {
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

    /// Encodes a tree if it can be decoded again: the server's additions (managed fields, defaults, a conversion) may
    /// have made it deeper than the sent object.
    fn encode_readable(&self, object: &Value) -> Result<Bytes, Status> {
        /// The levels around a set of fields.
        const ENTRY: usize = 4;
        let sets_exceed = |metadata| json::managed_fields_exceed_depth(metadata, MAX_DEPTH - ENTRY);
        if tree::exceeds_depth(object, MAX_DEPTH) || object.get("metadata").is_some_and(sets_exceed) {
            return Err(Status::bad_request("the object exceeded max depth"));
        }
        Ok(self.codec.encode(object))
    }

    /// The payload of a write: the encoded object, its stored form, and the contents that the cache needs of it.
    pub(super) fn payload(&self, encoded: &Encoded, object: &Value) -> Payload {
        let stored = match &encoded.stored {
            Some(stored) => Some(stored.clone()),
            None => self.storage_codec.stored_form(object),
        };
        let selectable = self.codec.selectable(encoded.shown.as_ref().unwrap_or(object));
        Payload::new(encoded.bytes.clone(), stored, Some(selectable))
    }

    /// Waits until the watch cache has a write, if the server decides requests by the objects of this resource. The wait
    /// is bounded by the cache's timeout; the write has succeeded in any case.
    pub(super) async fn wait_until_in_force(&self, revision: Revision) {
        if !self.resource.in_force_when_answered {
            return;
        }
        if let Err(error) = self.cacher.wait_for(revision).await {
            let resource = &self.group_resource;
            tracing::warn!(%resource, %revision, %error, "a write is answered before it is in force");
        }
    }

    /// The result of a write, or of a dry run, once it is in force.
    ///
    /// # Errors
    /// The errors of the conversion to the version of this store.
    pub(super) async fn written(
        &self,
        object: Value,
        encoded: &Encoded,
        revision: Option<Revision>,
    ) -> Result<Written, Status> {
        if let Some(revision) = revision {
            self.wait_until_in_force(revision).await;
        }
        self.shown(object, encoded, revision).await
    }

    /// The result of a write that is in force, or of a dry run.
    ///
    /// # Errors
    /// The errors of the conversion to the version of this store.
    pub(super) async fn shown(
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
            // Fields that the storage version does not have are lost, and the response shows that.
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

    /// The kind of an object in error messages: a body may claim another kind, for which validation rejects it.
    pub(super) fn kind_of(&self, object: &Value) -> GroupKind {
        match self.resource.model.keeps_claimed_kind() {
            true => {
                let version = GroupVersion::parse(object.str_at("apiVersion"));
                let group = version.map_or_else(|| self.group_kind.group.clone(), |version| version.group);
                GroupKind::new(group, object.str_at("kind"))
            }
            false => self.group_kind.clone(),
        }
    }
}

/// The 400 for an object of a namespaced resource in a path with an empty namespace.
pub(crate) fn namespace_required() -> Status {
    Status::bad_request("Namespace parameter required.")
}
