//! Encodes cached objects as responses.
//!
//! The cache holds JSON of the storage version, which is sliced, never copied or decoded. Other JSON versions and
//! protobuf are made on first demand and cached beside the object. YAML, tables and partial metadata are made for each
//! response.

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
use pintle_machinery::{
    Status, Value, ValueExt,
    codec::{json, protobuf, yaml},
};
use pintle_registry::{Column, Converter};
use pintle_schema::{Schema, SchemaRef};
use serde_json::json;
use std::{
    borrow::Cow,
    sync::{Arc, LazyLock},
};

/// The value of `includeObject`: the part of the object in a table's row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IncludeObject {
    /// No part.
    None,
    /// The metadata.
    Metadata,
    /// The whole object.
    Object,
}

impl IncludeObject {
    /// Reads the `includeObject` parameter.
    ///
    /// # Errors
    /// 400 for an unknown value.
    pub(super) fn parse(text: Option<&str>) -> Result<IncludeObject, Status> {
        match text {
            None | Some("" | "Metadata") => Ok(IncludeObject::Metadata),
            Some("None") => Ok(IncludeObject::None),
            Some("Object") => Ok(IncludeObject::Object),
            Some(other) => Err(Status::bad_request(format!(
                "Unable to convert to Table as requested: includeObject: Invalid value: {}: must be 'Metadata', 'Object', 'None', or empty",
                pintle_go_forms::quote(other)
            ))),
        }
    }
}

/// The size limit of a converted object, in bytes: `CONVERTED_SIZE + CONVERTED_FACTOR * its JSON's size`.
const CONVERTED_SIZE: usize = 64 * 1024;
const CONVERTED_FACTOR: usize = 8;
/// How many bytes of objects are converted in one batch.
const CONVERTED_AT_ONCE: usize = 4 << 20;

static META_V1: LazyLock<MetaTypes> = LazyLock::new(MetaTypes::new);

struct MetaTypes {
    partial: SchemaRef<'static>,
    list_meta: SchemaRef<'static>,
}

impl MetaTypes {
    fn new() -> MetaTypes {
        let find = |name: &str| {
            let name = format!("k8s.io/apimachinery/pkg/apis/meta/v1.{name}");
            Schema::builtin().by_type_name(&name).expect("the built-in schema has the types of meta.k8s.io")
        };
        MetaTypes { partial: find("PartialObjectMetadata"), list_meta: find("ListMeta") }
    }
}

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

    /// The response with one cached object.
    ///
    /// # Errors
    /// 500 when the stored bytes cannot be read.
    pub(super) fn object(&self, object: &CachedObject) -> Result<Bytes, Status> {
        match (&self.accepted.transform, self.accepted.media_type) {
            (None, MediaType::Json) if !self.accepted.pretty => self.json(object),
            (None, MediaType::Json) => Ok(indent(&self.json(object)?)),
            (None, MediaType::Protobuf) => self.protobuf_object(object),
            _ => self.tree_answer(self.tree(object)?),
        }
    }

    /// The response with one object's tree, which is in this version.
    ///
    /// # Errors
    /// 500 when the tree does not fit its schema.
    pub(super) fn tree_answer(&self, tree: Value) -> Result<Bytes, Status> {
        match &self.accepted.transform {
            None => encode(&tree, self.resource.schema.get(), &self.accepted),
            Some((Transform::PartialObjectMetadata, version)) => {
                encode(&partial(&tree, version), META_V1.partial, &self.accepted)
            }
            Some((Transform::Table, version)) => {
                let mut table = TableWriter::new(self, version, true);
                let metadata = json!({"resourceVersion": tree.str_at("metadata.resourceVersion")});
                table.begin(&metadata);
                table.row(&tree);
                self.finish_json(table.end())
            }
        }
    }

    /// Final JSON of this version, with its newline.
    ///
    /// # Errors
    /// 500 when the stored bytes cannot be read, or [`Encoder::convert`] was not called for the object.
    pub(super) fn json(&self, object: &CachedObject) -> Result<Bytes, Status> {
        if self.resource.is_cached_version() {
            return Ok(object.json().clone());
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
    pub(super) fn tree(&self, object: &CachedObject) -> Result<Value, Status> {
        let converted = match self.resource.resource.converter {
            Some(_) => self.json(object)?,
            None => object.json().clone(),
        };
        let tree = json::decode_any(&converted).map_err(Status::internal_error)?;
        Ok(self.resource.from_storage(tree))
    }

    /// Converts objects that have no JSON of this version yet, in batches. Call it before any other encoding of them;
    /// it does nothing for built-in kinds.
    ///
    /// # Errors
    /// When an object cannot be converted.
    pub(super) async fn convert<'a>(
        &self,
        objects: impl IntoIterator<Item = &'a Arc<CachedObject>>,
    ) -> Result<(), Status> {
        let Some(converter) = &self.resource.resource.converter else { return Ok(()) };
        let id = self.representation(MediaType::Json);
        let mut batch: Vec<&Arc<CachedObject>> = Vec::new();
        let mut size = 0;
        for object in objects {
            let is_there = registry::is_of_version(object.json(), &self.resource.resource)
                || object.existing_representation(id).is_some();
            if is_there {
                continue;
            }
            size += object.json().len();
            batch.push(object);
            // A tree takes many times the memory of its JSON.
            if size >= CONVERTED_AT_ONCE {
                self.convert_batch(&**converter, std::mem::take(&mut batch)).await?;
                size = 0;
            }
        }
        match batch.is_empty() {
            true => Ok(()),
            false => self.convert_batch(&**converter, batch).await,
        }
    }

    async fn convert_batch(
        &self,
        converter: &dyn Converter,
        objects: Vec<&Arc<CachedObject>>,
    ) -> Result<(), Status> {
        let id = self.representation(MediaType::Json);
        let trees = objects.iter().map(|object| json::decode_any(object.json()));
        let trees: Vec<Value> = trees.collect::<Result<_, _>>().map_err(Status::internal_error)?;
        let schema = &self.resource.schema;
        let converted = registry::convert(converter, trees, &self.resource.resource, schema).await?;
        for (object, tree) in objects.into_iter().zip(converted) {
            object.representation(id, || {
                let mut bytes = json::encode(&tree, schema.get());
                bytes.push(b'\n');
                // The JSON is cached beside the object, so its size is bounded.
                match bytes.len() > CONVERTED_SIZE + CONVERTED_FACTOR * object.json().len() {
                    true => Err(Status::unknown("the converted object is too large")),
                    false => Ok(Bytes::from(bytes)),
                }
            })?;
        }
        Ok(())
    }

    /// The protobuf form of this version, with its envelope.
    pub(super) fn protobuf_object(&self, object: &CachedObject) -> Result<Bytes, Status> {
        object.representation(self.representation(MediaType::Protobuf), || {
            let bytes = protobuf::encode(&self.tree(object)?, self.resource.schema.get());
            bytes.map(Bytes::from).ok_or_else(no_protobuf)
        })
    }

    /// `ListMeta` as a protobuf message.
    pub(super) fn protobuf_list_meta(&self, metadata: &Value) -> Result<Vec<u8>, Status> {
        protobuf::encode_message(metadata, META_V1.list_meta).ok_or_else(no_protobuf)
    }

    /// The cache slot of an encoding of this version: two slots per version, after those of the storage version.
    pub(super) fn representation(&self, media_type: MediaType) -> RepresentationId {
        representation_of(self.resource, media_type)
    }

    /// A whole JSON response in the negotiated form.
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

fn representation_of(resource: &VersionedResource, media_type: MediaType) -> RepresentationId {
    let slot = resource.slot * 4;
    RepresentationId(match media_type {
        MediaType::Json => slot,
        MediaType::Protobuf => slot + 1,
        MediaType::Yaml => slot + 2,
    })
}

/// The object's JSON in a version, if it exists: the cached JSON, or the result of an earlier conversion.
pub(super) fn made_json(resource: &VersionedResource, object: &CachedObject) -> Option<Bytes> {
    let is_own = resource.is_cached_version()
        || (resource.resource.converter.is_some()
            && registry::is_of_version(object.json(), &resource.resource));
    match is_own {
        true => Some(object.json().clone()),
        false => object.existing_representation(representation_of(resource, MediaType::Json)),
    }
}

/// The metadata of an object, as `PartialObjectMetadata`.
pub(super) fn partial(tree: &Value, version: &str) -> Value {
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": format!("meta.k8s.io/{version}"),
        "metadata": tree.field("metadata").cloned().unwrap_or_default(),
    })
}

/// The partial metadata of a cached object; only the metadata is decoded where possible.
pub(super) fn partial_tree(encoder: &Encoder<'_>, object: &CachedObject) -> Result<Value, Status> {
    let version = encoder.accepted.transform.as_ref().map_or("v1", |(_, version)| version);
    if encoder.resource.is_cached_version()
        && let Ok(decoded) = json::decode(object.json(), META_V1.partial)
    {
        return Ok(partial(&decoded.value, version));
    }
    Ok(partial(&encoder.tree(object)?, version))
}

/// One item of a `PartialObjectMetadataList`, as JSON.
pub(super) fn partial_json(encoder: &Encoder<'_>, object: &CachedObject) -> Result<Vec<u8>, Status> {
    Ok(json::encode(&partial_tree(encoder, object)?, META_V1.partial))
}

/// One item of a `PartialObjectMetadataList`, as a protobuf message.
pub(super) fn partial_protobuf(encoder: &Encoder<'_>, object: &CachedObject) -> Result<Vec<u8>, Status> {
    protobuf::encode_message(&partial_tree(encoder, object)?, META_V1.partial).ok_or_else(no_protobuf)
}

/// The schema of `PartialObjectMetadata`.
pub(super) fn partial_schema() -> SchemaRef<'static> {
    META_V1.partial
}

/// Writes a `Table`, row by row.
pub(super) struct TableWriter<'a> {
    encoder: &'a Encoder<'a>,
    version: &'a str,
    columns: Option<Vec<Column>>,
    bytes: BytesMut,
    has_rows: bool,
}

impl<'a> TableWriter<'a> {
    /// A writer for the request's objects; a watch sends column definitions in its first table only.
    pub(super) fn new(encoder: &'a Encoder<'a>, version: &'a str, with_columns: bool) -> TableWriter<'a> {
        let columns = with_columns.then(|| encoder.resource.resource.table.columns());
        TableWriter { encoder, version, columns, bytes: BytesMut::new(), has_rows: false }
    }

    /// Writes the bytes before the rows.
    pub(super) fn begin(&mut self, metadata: &Value) {
        self.bytes.put_slice(table_head(self.version, self.columns.as_deref(), metadata).as_bytes());
    }

    /// Writes the row of one object.
    pub(super) fn row(&mut self, tree: &Value) {
        if std::mem::replace(&mut self.has_rows, true) {
            self.bytes.put_u8(b',');
        }
        table_row(self.encoder, self.version, tree, &mut self.bytes);
    }

    /// Finishes the table.
    pub(super) fn end(mut self) -> Bytes {
        self.bytes.put_slice(b"]}\n");
        self.bytes.freeze()
    }
}

/// The bytes before the rows of a `Table`; a watch sends column definitions in its first table only.
pub(super) fn table_head(version: &str, columns: Option<&[Column]>, metadata: &Value) -> String {
    let columns = match columns {
        None => "null".to_owned(),
        Some(columns) => format!("[{}]", columns.iter().map(column).collect::<Vec<_>>().join(",")),
    };
    format!(
        "{{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/{version}\",\"metadata\":{},\"columnDefinitions\":{columns},\"rows\":[",
        list_metadata(metadata)
    )
}

/// Writes the row of one object.
pub(super) fn table_row(encoder: &Encoder<'_>, version: &str, tree: &Value, out: &mut BytesMut) {
    let table = &encoder.resource.resource.table;
    let cells = Value::Array(table.cells(tree, encoder.now));
    out.put_slice(b"{\"cells\":");
    out.put_slice(&json::encode_any(&cells));
    let conditions = table.row_conditions(tree);
    if !conditions.is_empty() {
        out.put_slice(b",\"conditions\":");
        let conditions: Vec<_> = conditions.iter().map(condition).collect();
        out.put_slice(format!("[{}]", conditions.join(",")).as_bytes());
    }
    let object: Cow<'_, [u8]> = match encoder.include_object {
        IncludeObject::None => b"null".as_slice().into(),
        IncludeObject::Metadata => json::encode(&partial(tree, version), META_V1.partial).into(),
        IncludeObject::Object => json::encode(tree, encoder.resource.schema.get()).into(),
    };
    out.put_slice(b",\"object\":");
    out.put_slice(&object);
    out.put_u8(b'}');
}

/// The `metadata` of a list, in Go's field order.
pub(super) fn list_metadata(metadata: &Value) -> String {
    let mut out = String::from("{");
    for name in ["resourceVersion", "continue", "remainingItemCount"] {
        if let Some(value) = metadata.get(name) {
            if out.len() > 1 {
                out.push(',');
            }
            out.push_str(&format!("\"{name}\":{value}"));
        }
    }
    out.push('}');
    out
}

/// A column definition, in Go's field order.
fn column(column: &Column) -> String {
    format!(
        "{{\"name\":{},\"type\":{},\"format\":{},\"description\":{},\"priority\":{}}}",
        text(&column.name.as_str().into()),
        text(&column.column_type.as_str().into()),
        text(&column.format.as_str().into()),
        text(&column.description.as_str().into()),
        column.priority
    )
}

/// A row condition, in Go's field order.
fn condition(condition: &Value) -> String {
    let members = ["type", "status", "reason", "message"]
        .iter()
        .filter_map(|name| condition.get(*name).map(|value| format!("\"{name}\":{}", text(value))));
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

/// A value as JSON with Go's HTML escapes.
fn text(value: &Value) -> String {
    String::from_utf8(json::encode_any(value)).unwrap_or_default()
}
