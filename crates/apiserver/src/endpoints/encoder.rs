//! Encodes cached objects as responses.
//!
//! The cache holds JSON of the storage version, which is sliced, never copied or decoded. Other JSON versions and
//! protobuf are made on first demand and cached beside the object. YAML, tables and partial metadata are made for each
//! response; watches of tables and partial metadata share the frames of an event.

mod include_object;
mod meta_types;
mod table;

pub(super) use include_object::IncludeObject;
pub(super) use meta_types::{SHARD_INFO, list_metadata, partial, partial_schema};
pub(super) use table::{INITIAL_EVENTS_END, TABLE_FOOT};

use self::{meta_types::META_V1, table::TableForm};
use crate::{
    base::{
        encoding::{encode, indent, no_protobuf},
        negotiation::{Accepted, MediaType, Transform},
    },
    registry::{self, VersionedResource},
};
use bytes::{BufMut, Bytes, BytesMut};
use jiff::Timestamp;
use pintle_cacher::{CachedObject, RepresentationId};
use pintle_gzip::Part;
use pintle_machinery::{
    Status, Value, ValueExt,
    codec::{cbor, json, protobuf, yaml},
    json,
};
use pintle_registry::{Converter, ObjectForm};
use std::sync::Arc;

/// The cache slots of a version: those of whole objects, of their metadata, of compressed list items, of table rows, and
/// of what selectors read.
const SLOTS: u32 = 20;
const METADATA: u32 = 4;
const COMPRESSED: u32 = 8;
const ROWS: u32 = 12;
const SELECTABLE: u32 = 16;
/// The cache slot of the UID, which is the same in all versions.
pub(super) const UID: RepresentationId = RepresentationId(SLOTS - 1);
/// The size limit of a converted object, in bytes: `CONVERTED_SIZE + CONVERTED_FACTOR * its JSON's size`.
const CONVERTED_SIZE: usize = 64 * 1024;
const CONVERTED_FACTOR: usize = 8;
/// How many bytes of objects are converted in one batch.
const CONVERTED_AT_ONCE: usize = 4 << 20;

/// Encodes the responses of one request.
pub(super) struct Encoder<'a> {
    /// The resource of the objects.
    pub(super) resource: &'a VersionedResource,
    /// The negotiated form.
    pub(super) accepted: Accepted,
    /// The part of the object in table rows.
    pub(super) include_object: IncludeObject,
    /// The time that ages in tables are relative to.
    pub(super) now: Timestamp,
}

impl Encoder<'_> {
    /// Whether responses are slices of the cached JSON.
    pub(super) fn is_cached_json(&self) -> bool {
        self.accepted.transform.is_none()
            && self.accepted.media_type == MediaType::Json
            && !self.accepted.pretty
            && self.resource.is_storage_version()
    }

    /// Checks that objects and lists exist in the negotiated form.
    ///
    /// # Errors
    /// The [refusal](Accepted::refusal) of the form.
    pub(super) fn check(&self) -> Result<(), Status> {
        self.accepted.refusal.as_ref().map_or(Ok(()), |refusal| Err(Status::clone(refusal)))
    }

    /// The response with one cached object.
    ///
    /// # Errors
    /// 500 when the stored bytes cannot be read, and those of [`Encoder::check`].
    pub(super) fn object(&self, object: &CachedObject) -> Result<Bytes, Status> {
        match (&self.accepted.transform, self.accepted.media_type) {
            (None, MediaType::Json) if !self.accepted.pretty => self.json(object),
            (None, MediaType::Json) => Ok(indent(&self.json(object)?)),
            (None, MediaType::Protobuf) => self.protobuf_object(object),
            (None, MediaType::Cbor) => self.cbor_object(object),
            _ => self.stored_answer(self.stored_tree(object)?),
        }
    }

    /// The response with one object's tree, which is of the storage kind. Tables and partial metadata are made of that
    /// tree, and so do not show what other versions keep in annotations.
    ///
    /// # Errors
    /// 500 when the tree does not fit its schema, and those of [`Encoder::check`].
    pub(super) fn stored_answer(&self, mut tree: Value) -> Result<Bytes, Status> {
        self.check()?;
        match &self.accepted.transform {
            None => encode(&self.resource.from_storage(tree), self.resource.schema.get(), &self.accepted),
            Some((Transform::PartialObjectMetadata, version)) => {
                encode(&partial(&self.resource.resource, &tree, version), META_V1.partial, &self.accepted)
            }
            Some((Transform::Table, version)) => {
                // Columns may show members of a map, as they do in lists.
                if self.resource.resource.model.form == ObjectForm::Map
                    && let Some(metadata) = tree.at_mut("metadata")
                {
                    json::open_managed_fields(metadata);
                }
                let metadata = json!({"resourceVersion": tree.str_at("metadata.resourceVersion")});
                self.finish_json(self.table(version).of_one(true, &metadata, &tree))
            }
        }
    }

    /// The response with an object without any content.
    ///
    /// # Errors
    /// As [`Encoder::stored_answer`].
    pub(super) fn empty_answer(&self) -> Result<Bytes, Status> {
        let object = self.resource.resource.empty_object();
        if self.accepted.transform.is_some() {
            return self.stored_answer(object);
        }
        self.check()?;
        encode(&object, self.resource.schema.get(), &self.accepted)
    }

    /// Final JSON of this version, with its newline.
    ///
    /// # Errors
    /// 500 when the stored bytes cannot be read, or [`Encoder::convert`] was not called for the object.
    pub(super) fn json(&self, object: &CachedObject) -> Result<Bytes, Status> {
        if self.resource.is_cached_version() {
            return Ok(object.json());
        }
        if self.resource.resource.converter.is_some() {
            let made = made_json(self.resource, object);
            return made.ok_or_else(|| Status::internal_error("an object that was not converted"));
        }
        object.representation(self.representation(MediaType::Json), || {
            let mut bytes = json::encode(&self.tree(object)?, self.resource.schema.get());
            bytes.push(b'\n');
            Ok(bytes.into())
        })
    }

    /// The object's tree in this version.
    ///
    /// # Errors
    /// As [`Encoder::json`].
    fn tree(&self, object: &CachedObject) -> Result<Value, Status> {
        Ok(self.resource.from_storage(self.stored_tree(object)?))
    }

    /// The object's tree of the storage kind, or, with a converter, in this version.
    ///
    /// # Errors
    /// As [`Encoder::json`].
    pub(super) fn stored_tree(&self, object: &CachedObject) -> Result<Value, Status> {
        let converted = match self.resource.resource.converter {
            Some(_) => self.json(object)?,
            None => object.json(),
        };
        let is_cached = |_: &&Bytes| {
            self.resource.resource.converter.is_none()
                || registry::is_of_version(&object.json(), &self.resource.resource)
                || self.resource.is_cached_version()
        };
        if let Some(exact) = object.exact().filter(is_cached) {
            let mut tree = json::decode_any(exact).map_err(Status::internal_error)?;
            tree.set("metadata.resourceVersion", object.revision().to_string());
            return Ok(tree);
        }
        json::decode_any(&converted).map_err(Status::internal_error)
    }

    /// The tree that a table's row is made of: that of [`Encoder::stored_tree`], or its metadata if the row shows nothing
    /// else.
    ///
    /// # Errors
    /// As [`Encoder::json`].
    pub(super) fn row_tree(&self, object: &CachedObject) -> Result<Value, Status> {
        let resource = &self.resource.resource;
        let is_metadata_only =
            resource.table.reads_metadata_only() && self.include_object != IncludeObject::Object;
        if is_metadata_only
            && (resource.converter.is_none() || self.resource.is_cached_version())
            && object.exact().is_none()
            && let Some(bare) = bare_metadata(&object.json())
        {
            return json::decode_any(&bare).map_err(Status::internal_error);
        }
        self.stored_tree(object)
    }

    /// As [`convert`], to the version of the request.
    ///
    /// # Errors
    /// When an object cannot be converted.
    pub(super) async fn convert<'a>(
        &self,
        objects: impl IntoIterator<Item = &'a Arc<CachedObject>>,
    ) -> Result<(), Status> {
        convert(self.resource, objects).await
    }

    /// The form of tables of `version` of `meta.k8s.io`.
    pub(super) fn table<'b>(&'b self, version: &'b str) -> TableForm<'b> {
        TableForm { resource: self.resource, version, include_object: self.include_object, now: self.now }
    }

    /// The partial metadata of a cached object; only the metadata is decoded where possible.
    ///
    /// # Errors
    /// As [`Encoder::json`].
    pub(super) fn partial_tree(&self, object: &CachedObject) -> Result<Value, Status> {
        let version = self.accepted.transform.as_ref().map_or("v1", |(_, version)| version);
        let resource = &self.resource.resource;
        if (resource.converter.is_none() || self.resource.is_cached_version())
            && let Some(bare) = bare_metadata(&object.json())
            && let Ok(decoded) = json::decode(&bare, META_V1.partial)
        {
            return Ok(partial(resource, &decoded.value, version));
        }
        Ok(partial(resource, &self.stored_tree(object)?, version))
    }

    /// One item of a `PartialObjectMetadataList`, as JSON.
    ///
    /// # Errors
    /// As [`Encoder::json`].
    pub(super) fn partial_json(&self, object: &CachedObject) -> Result<Vec<u8>, Status> {
        Ok(json::encode(&self.partial_tree(object)?, META_V1.partial))
    }

    /// One item of a `PartialObjectMetadataList`, as a protobuf message.
    ///
    /// # Errors
    /// As [`Encoder::json`].
    pub(super) fn partial_protobuf(&self, object: &CachedObject) -> Result<Vec<u8>, Status> {
        protobuf::encode_message(&self.partial_tree(object)?, META_V1.partial).ok_or_else(no_protobuf)
    }

    /// The protobuf form of this version, with its envelope.
    ///
    /// # Errors
    /// 406 for a kind without that form, and those of [`Encoder::json`].
    pub(super) fn protobuf_object(&self, object: &CachedObject) -> Result<Bytes, Status> {
        object.representation(self.representation(MediaType::Protobuf), || {
            let bytes = protobuf::encode(&self.tree(object)?, self.resource.schema.get());
            bytes.map(Bytes::from).ok_or_else(no_protobuf)
        })
    }

    /// The CBOR form of this version, behind its tag.
    ///
    /// # Errors
    /// As [`Encoder::json`].
    pub(super) fn cbor_object(&self, object: &CachedObject) -> Result<Bytes, Status> {
        object.representation(self.representation(MediaType::Cbor), || {
            Ok(cbor::encode(&self.tree(object)?, self.resource.schema.get()).into())
        })
    }

    /// One item of a `PartialObjectMetadataList`, as CBOR.
    ///
    /// # Errors
    /// As [`Encoder::json`].
    pub(super) fn partial_cbor(&self, object: &CachedObject) -> Result<Vec<u8>, Status> {
        Ok(cbor::encode(&self.partial_tree(object)?, META_V1.partial))
    }

    /// `ListMeta` as a protobuf message.
    ///
    /// # Errors
    /// 406 for metadata without that form, which no list has.
    pub(super) fn protobuf_list_meta(&self, metadata: &Value) -> Result<Vec<u8>, Status> {
        protobuf::encode_message(metadata, META_V1.list_meta).ok_or_else(no_protobuf)
    }

    /// The cache slot of an encoding of this version.
    pub(super) fn representation(&self, media_type: MediaType) -> RepresentationId {
        representation_of(self.resource, media_type)
    }

    /// The slot of a watch event's frame with the object's metadata in this form; `None` for a form that watches do not
    /// share.
    pub(super) fn partial_representation(&self) -> Option<RepresentationId> {
        let (_, version) = self.accepted.transform.as_ref()?;
        let number = METADATA + media_type_number(self.accepted.media_type);
        let is_shared = version == "v1" && !self.accepted.pretty;
        is_shared.then_some(RepresentationId(self.resource.slot * SLOTS + number))
    }

    /// The slot of a watch event's frame with the object's row in a table without column definitions; `None` for a form
    /// that watches do not share.
    pub(super) fn row_representation(&self) -> Option<RepresentationId> {
        let (_, version) = self.accepted.transform.as_ref()?;
        let part = match self.include_object {
            IncludeObject::Metadata => 0,
            IncludeObject::Object => 1,
            IncludeObject::None => 2,
        };
        let is_shared = version == "v1" && self.accepted.media_type == MediaType::Json;
        is_shared.then_some(RepresentationId(self.resource.slot * SLOTS + ROWS + part))
    }

    /// The compressed form of a list item, whose content is `content`.
    ///
    /// # Errors
    /// Those of `content`.
    pub(super) fn compressed_item(
        &self,
        object: &CachedObject,
        content: impl FnOnce() -> Result<[Bytes; 2], Status>,
    ) -> Result<Part, Status> {
        let number = COMPRESSED + media_type_number(self.accepted.media_type);
        let id = RepresentationId(self.resource.slot * SLOTS + number);
        let bytes = object.representation(id, || {
            let [head, rest] = content()?;
            Ok::<_, Status>(Part::fast(&[&head, &rest]).to_bytes())
        })?;
        Part::from_bytes(&bytes).ok_or_else(|| Status::internal_error("the bytes of a list item"))
    }

    /// A whole JSON response in the negotiated form.
    ///
    /// # Errors
    /// 500 when `bytes` are not JSON.
    pub(super) fn finish_json(&self, bytes: Bytes) -> Result<Bytes, Status> {
        match self.accepted.media_type {
            MediaType::Json if self.accepted.pretty => Ok(indent(&bytes)),
            MediaType::Json => Ok(bytes),
            _ => {
                let tree = json::decode_any(&bytes).map_err(Status::internal_error)?;
                Ok(yaml::encode_any(&tree).into())
            }
        }
    }

    /// The frame of a watch event about this object.
    pub(super) fn event(&self, event_type: &str, object: Bytes) -> Bytes {
        match self.accepted.media_type {
            MediaType::Protobuf => protobuf::watch_frame(event_type, &object).into(),
            MediaType::Cbor => cbor::watch_frame(event_type, &object).into(),
            MediaType::Json | MediaType::Yaml => {
                let object = object.strip_suffix(b"\n").unwrap_or(&object);
                let mut frame = BytesMut::with_capacity(object.len() + event_type.len() + 24);
                frame.put_slice(b"{\"type\":\"");
                frame.put_slice(event_type.as_bytes());
                frame.put_slice(b"\",\"object\":");
                frame.put_slice(object);
                frame.put_slice(b"}\n");
                frame.freeze()
            }
        }
    }
}

/// An object with the metadata of an object's JSON alone. The rest may be a hundred times as long.
fn bare_metadata(json: &[u8]) -> Option<Vec<u8>> {
    let metadata = registry::metadata_json(json)?;
    Some([b"{\"metadata\":", metadata, b"}"].concat())
}

/// Converts objects that have no JSON of the resource's version yet, in batches. Call it before any other encoding of
/// them; it does nothing for a resource without a converter.
///
/// # Errors
/// When an object cannot be converted.
pub(super) async fn convert<'a>(
    resource: &VersionedResource,
    objects: impl IntoIterator<Item = &'a Arc<CachedObject>>,
) -> Result<(), Status> {
    let Some(converter) = &resource.resource.converter else { return Ok(()) };
    let mut batch: Vec<&Arc<CachedObject>> = Vec::new();
    let mut size = 0;
    for object in objects {
        if made_json(resource, object).is_some() {
            continue;
        }
        size += object.size();
        batch.push(object);
        // A tree takes many times the memory of its JSON.
        if size >= CONVERTED_AT_ONCE {
            convert_batch(resource, &**converter, std::mem::take(&mut batch)).await?;
            size = 0;
        }
    }
    match batch.is_empty() {
        true => Ok(()),
        false => convert_batch(resource, &**converter, batch).await,
    }
}

async fn convert_batch(
    resource: &VersionedResource,
    converter: &dyn Converter,
    objects: Vec<&Arc<CachedObject>>,
) -> Result<(), Status> {
    let id = representation_of(resource, MediaType::Json);
    let trees = objects.iter().map(|object| json::decode_any(&object.json()));
    let trees: Vec<Value> = trees.collect::<Result<_, _>>().map_err(Status::internal_error)?;
    let schema = &resource.schema;
    let converted = registry::convert_stored(converter, trees, &resource.resource, schema).await?;
    for (object, tree) in objects.into_iter().zip(converted) {
        object.representation(id, || {
            let mut bytes = json::encode(&tree, schema.get());
            bytes.push(b'\n');
            // The JSON is cached beside the object, so its size is bounded.
            match bytes.len() > CONVERTED_SIZE + CONVERTED_FACTOR * object.size() {
                true => Err(Status::unknown("the converted object is too large")),
                false => Ok(Bytes::from(bytes)),
            }
        })?;
    }
    Ok(())
}

/// The cache slot of what selectors read of objects in a version.
pub(super) fn selectable_representation(resource: &VersionedResource) -> RepresentationId {
    RepresentationId(resource.slot * SLOTS + SELECTABLE)
}

fn representation_of(resource: &VersionedResource, media_type: MediaType) -> RepresentationId {
    RepresentationId(resource.slot * SLOTS + media_type_number(media_type))
}

fn media_type_number(media_type: MediaType) -> u32 {
    match media_type {
        MediaType::Json => 0,
        MediaType::Protobuf => 1,
        MediaType::Yaml => 2,
        MediaType::Cbor => 3,
    }
}

/// The object's JSON in a version, if it exists: the cached JSON, or the result of an earlier conversion.
pub(super) fn made_json(resource: &VersionedResource, object: &CachedObject) -> Option<Bytes> {
    let is_own = resource.is_cached_version()
        || (resource.resource.converter.is_some()
            && registry::is_of_version(&object.json(), &resource.resource));
    match is_own {
        true => Some(object.json()),
        false => object.existing_representation(representation_of(resource, MediaType::Json)),
    }
}
