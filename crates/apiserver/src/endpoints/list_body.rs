//! Streams the bodies of lists: a head, the items, and a foot.
//!
//! A list of any size takes constant memory, in every form but YAML: frames are filled from the snapshot when the
//! connection accepts them, and the snapshot shares its objects with the cache.
//!
//! For a client that asks for gzip, each item is compressed once and cached beside the object: most items of a list do
//! not change between two reads. Forms that are made for each response are compressed by the filter.

use super::{
    encoder::{Encoder, IncludeObject, SHARD_INFO, TABLE_FOOT, list_metadata, made_json},
    frame_size::{FRAME_BYTES, READ_BYTES},
    page::Page,
};
use crate::{
    base::{
        body::Body,
        compression::THRESHOLD,
        encoding::Indenter,
        negotiation::{Accepted, MediaType, Transform},
    },
    registry::VersionedResource,
};
use bytes::{BufMut, Bytes, BytesMut};
use futures_util::StreamExt as _;
use jiff::Timestamp;
use pintle_cacher::{CachedObject, Held, Snapshot};
use pintle_gzip::{HEADER, Part, Trailer};
use pintle_machinery::{
    Status, Value, ValueExt,
    codec::{cbor, json, protobuf, yaml},
};
use pintle_offload::beside;
use pintle_storage::Key;
use std::{cell::Cell, collections::VecDeque, sync::Arc};

/// The room for the object that fills a frame, in bytes, and for a short list.
const OBJECT_ROOM: usize = 16 * 1024;
/// A list of fewer bytes is sent whole, with a `Content-Length`.
const BUFFERED_BYTES: usize = 2048;
/// The limit of JSON bytes for a YAML list, which is made from one tree.
const MAX_YAML: usize = 4 << 20;

/// The objects that a list sends.
pub(super) enum Objects {
    /// The objects that a page selects.
    Page { page: Box<Page>, after: Option<Key> },
    /// Collected objects of a state.
    Items { items: VecDeque<Arc<CachedObject>>, of: Snapshot },
}

impl Objects {
    fn rest(&self) -> Box<dyn Iterator<Item = &Arc<CachedObject>> + Send + '_> {
        match self {
            Objects::Page { page, after } => Box::new(page.objects(after.as_ref())),
            Objects::Items { items, .. } => Box::new(items.iter()),
        }
    }

    /// As [`Objects::rest`]; counts the objects that are read, selected or not.
    fn counted<'a>(&'a self, read: &'a Cell<usize>) -> Box<dyn Iterator<Item = &'a Arc<CachedObject>> + 'a> {
        match self {
            Objects::Page { page, after } => Box::new(page.counted(after.as_ref(), read)),
            Objects::Items { items, .. } => Box::new(items.iter()),
        }
    }

    /// The state that has the objects.
    fn snapshot(&self) -> &Snapshot {
        match self {
            Objects::Page { page, .. } => page.state(),
            Objects::Items { of, .. } => of,
        }
    }

    /// Keeps only the rest of a page that needs no more, and not its whole state. Returns an upper bound of its bytes.
    fn narrow(&mut self) -> usize {
        if let Objects::Page { page, .. } = self
            && page.is_narrow()
        {
            let items: VecDeque<_> = self.rest().cloned().collect();
            let bytes = items.iter().map(|object| object.memory()).sum();
            *self = Objects::Items { items, of: Snapshot::default() };
            return bytes;
        }
        usize::MAX
    }

    fn go_on_after(&mut self, key: Key, count: usize) {
        match self {
            Objects::Page { after, .. } => *after = Some(key),
            Objects::Items { items, .. } => drop(items.drain(..count.min(items.len()))),
        }
    }
}

/// The form of a list's response.
pub(super) struct ListForm {
    pub(super) resource: Arc<VersionedResource>,
    pub(super) accepted: Accepted,
    pub(super) include_object: IncludeObject,
    pub(super) now: Timestamp,
    /// Whether the body may consist of compressed items.
    pub(super) may_compress: bool,
}

/// The body of a list.
pub(super) struct ListBody {
    pub(super) body: Body,
    pub(super) is_compressed: bool,
}

impl ListForm {
    /// The encoder of the list's objects.
    pub(super) fn encoder(&self) -> Encoder<'_> {
        Encoder {
            resource: &self.resource,
            accepted: self.accepted.clone(),
            include_object: self.include_object,
            now: self.now,
        }
    }

    /// The body of the list. Objects of other versions must be converted first ([`Encoder::convert`]).
    ///
    /// # Errors
    /// 406 when the list is too long for YAML, the [refusal](Accepted::refusal) of the form; 500 when an object cannot be
    /// encoded.
    pub(super) async fn body(self, objects: Objects, metadata: &Value) -> Result<ListBody, Status> {
        self.encoder().check()?;
        let is_cheap = self.encoder().is_cached_json();
        let as_yaml = self.accepted.media_type == MediaType::Yaml;
        if as_yaml && size_of(&objects) > MAX_YAML {
            return Err(Status::not_acceptable(format!(
                "a list of more than {MAX_YAML} bytes is not written as YAML; use a limit, or another media type"
            )));
        }
        let objects = self.in_order(objects)?;
        let writer = ListWriter::new(self, &objects, metadata)?;
        let is_compressed = writer.compressed.is_some();
        let is_cheap = is_cheap && !is_compressed;
        let frames = Frames { objects, writer, is_first: true };
        let (first, mut rest) = frames.next()?;
        if as_yaml {
            let mut json = BytesMut::from(first);
            while let Some(frames) = rest.take() {
                let (frame, next) = frames.next()?;
                json.extend_from_slice(&frame);
                rest = next;
            }
            let tree = json::decode_any(&json).map_err(Status::internal_error)?;
            let body = Body::from(Bytes::from(yaml::encode_any(&tree)));
            return Ok(ListBody { body, is_compressed });
        }
        let body = match rest {
            // Go's server sends the length of a response that fits its buffer.
            None if first.len() < BUFFERED_BYTES => Body::from(first),
            rest => {
                let rest = rest.map(Frames::hold);
                let rest = futures_util::stream::unfold(rest, move |rest| async move {
                    let held = rest?;
                    // The client notices the missing end of the body.
                    let Some(frames) = held.take() else {
                        tracing::warn!("a list ends before its end: its client is slow, and memory is short");
                        return None;
                    };
                    let next = match is_cheap {
                        true => frames.next(),
                        false => beside(|| frames.next()).await,
                    };
                    let next =
                        next.inspect_err(|status| tracing::error!(%status, "a list ends before its end"));
                    let (frame, rest) = next.ok()?;
                    Some((
                        frame,
                        rest.map(|rest| {
                            held.put_back(rest);
                            held
                        }),
                    ))
                });
                Body::stream(futures_util::stream::iter([first]).chain(rest))
            }
        };
        Ok(ListBody { body, is_compressed })
    }
}

impl ListForm {
    /// The objects in the order in which the form shows them.
    fn in_order(&self, objects: Objects) -> Result<Objects, Status> {
        let Some((Transform::Table, _)) = self.accepted.transform else { return Ok(objects) };
        let Some(rank) = self.resource.resource.table.rank() else { return Ok(objects) };
        let encoder = self.encoder();
        let ranked = objects.rest().map(|object| Ok((rank(&encoder.stored_tree(object)?), object.clone())));
        let mut ranked: Vec<(i64, Arc<CachedObject>)> = ranked.collect::<Result<_, Status>>()?;
        ranked.sort_by_key(|(rank, _)| *rank);
        let items = ranked.into_iter().map(|(_, object)| object).collect();
        Ok(Objects::Items { items, of: objects.snapshot().clone() })
    }
}

/// The JSON bytes of the objects, counted up to `MAX_YAML`.
fn size_of(objects: &Objects) -> usize {
    let mut size = 0;
    for object in objects.rest() {
        size += object.size();
        if size > MAX_YAML {
            break;
        }
    }
    size
}

/// The frames of a list that are still to be sent.
struct Frames {
    objects: Objects,
    writer: ListWriter,
    is_first: bool,
}

impl Frames {
    /// Holds them between two frames, as long as there is memory for their state.
    fn hold(mut self) -> Held<Frames> {
        let snapshot = self.objects.snapshot().clone();
        let most = self.objects.narrow();
        match self.writer.form.resource.store.clone() {
            Some(store) => store.cacher().hold(&snapshot, most, self),
            None => Held::free(self),
        }
    }

    fn next(mut self) -> Result<(Bytes, Option<Frames>), Status> {
        // Most lists are short; a buffer that is much larger than they are would wait with them for slow clients.
        let room = if self.is_first { OBJECT_ROOM } else { FRAME_BYTES + OBJECT_ROOM };
        let mut frame = BytesMut::with_capacity(room);
        let ListWriter { form, items, head, foot, separator, compressed, .. } = &mut self.writer;
        put(compressed, &std::mem::take(head), &mut frame);
        let (mut read, mut count) = (0, 0);
        let mut last = None;
        let fetched = Cell::new(0);
        let encoder = form.encoder();
        for object in self.objects.counted(&fetched) {
            let is_first = std::mem::replace(&mut self.is_first, false);
            match compressed {
                None => {
                    frame.put_slice(if is_first { b"" } else { separator });
                    items.write(&encoder, object, &mut frame)?;
                }
                Some(compressed) => {
                    if !is_first {
                        compressed.put_separator(&mut frame);
                    }
                    compressed.put(&items.compressed(&encoder, object)?, &mut frame);
                }
            }
            read += object.size();
            count += 1;
            if frame.len() >= FRAME_BYTES || read >= READ_BYTES {
                last = Some(object.key().clone());
                break;
            }
        }
        drop(encoder);
        if let Some(store) = form.resource.store.as_ref().filter(|_| fetched.get() > 0)
            && store.cacher().is_read_cached()
        {
            store.cacher().metrics().add_listed(fetched.get(), count);
        }
        if let Some(key) = last {
            self.objects.go_on_after(key, count);
            return Ok((self.writer.finish(frame), Some(self)));
        }
        put(compressed, foot, &mut frame);
        if let Some(compressed) = compressed.take() {
            frame.put_slice(&compressed.trailer.finish());
        }
        Ok((self.writer.finish(frame), None))
    }
}

/// Writes bytes that belong to no item.
fn put(compressed: &mut Option<Compressed>, bytes: &[u8], frame: &mut BytesMut) {
    match compressed {
        Some(_) if bytes.is_empty() => {}
        Some(compressed) => compressed.put(&Part::fast(&[bytes]), frame),
        None => frame.put_slice(bytes),
    }
}

/// The encoding of a list's items.
#[derive(Clone, Copy)]
enum Items {
    /// JSON without the first bytes (the type metadata) of each object.
    Json {
        skip: usize,
    },
    TableRows,
    PartialJson,
    Protobuf,
    PartialProtobuf {
        field: u32,
    },
    Cbor {
        with_type_meta: bool,
    },
    PartialCbor,
}

impl Items {
    /// Writes one object.
    fn write(
        self,
        encoder: &Encoder<'_>,
        object: &Arc<CachedObject>,
        out: &mut BytesMut,
    ) -> Result<(), Status> {
        match self {
            Items::Json { .. } | Items::Protobuf | Items::PartialProtobuf { .. } => {
                let [head, rest] = self.content(encoder, object)?;
                out.put_slice(&head);
                out.put_slice(&rest);
            }
            Items::TableRows => {
                let version = encoder.accepted.transform.as_ref().map_or("", |(_, version)| version);
                encoder.table(version).row(&encoder.row_tree(object)?, out);
            }
            Items::PartialJson => out.put_slice(&encoder.partial_json(object)?),
            Items::Cbor { with_type_meta } => {
                let body = encoder.cbor_object(object)?;
                match with_type_meta {
                    true => out.put_slice(body.strip_prefix(cbor::PREFIX).unwrap_or(&body)),
                    false => out.put_slice(&cbor::without_type_meta(&body).unwrap_or_default()),
                }
            }
            Items::PartialCbor => {
                let item = encoder.partial_cbor(object)?;
                out.put_slice(item.strip_prefix(cbor::PREFIX).unwrap_or(&item));
            }
        }
        Ok(())
    }

    /// The compressed form of one object, if its encoding is cached.
    fn compressed(self, encoder: &Encoder<'_>, object: &Arc<CachedObject>) -> Result<Part, Status> {
        encoder.compressed_item(object, || self.content(encoder, object))
    }

    /// The bytes of one object that is a slice of an encoding, with what comes before it.
    fn content(self, encoder: &Encoder<'_>, object: &Arc<CachedObject>) -> Result<[Bytes; 2], Status> {
        let Items::Json { skip } = self else {
            let (field, message) = protobuf_item(encoder, self, object)?;
            let mut head = Vec::with_capacity(8);
            protobuf::write_field_head(&mut head, field, message.len());
            return Ok([head.into(), message]);
        };
        let json = match made_json(encoder.resource, object) {
            Some(json) => json,
            None => encoder.json(object)?,
        };
        let end = json.trim_ascii_end().len();
        Ok([Bytes::from_static(b"{"), json.slice(skip.min(end)..end)])
    }

    /// The size of the content of one object, in bytes; `None` for those that are made for each response.
    fn size(self, encoder: &Encoder<'_>, object: &Arc<CachedObject>) -> Option<usize> {
        match self {
            Items::Json { .. } | Items::Protobuf => {
                self.content(encoder, object).ok().map(|[head, rest]| head.len() + rest.len())
            }
            Items::TableRows
            | Items::PartialJson
            | Items::PartialProtobuf { .. }
            | Items::Cbor { .. }
            | Items::PartialCbor => None,
        }
    }
}

/// Writes a list in pieces.
struct ListWriter {
    form: ListForm,
    items: Items,
    head: Vec<u8>,
    foot: Vec<u8>,
    /// The bytes between two items.
    separator: &'static [u8],
    indenter: Option<Indenter>,
    compressed: Option<Compressed>,
}

/// The state of a compressed body.
struct Compressed {
    trailer: Trailer,
    /// The separator, unless it is empty.
    separator: Option<Part>,
    is_begun: bool,
}

impl Compressed {
    fn put(&mut self, part: &Part, frame: &mut BytesMut) {
        if !std::mem::replace(&mut self.is_begun, true) {
            frame.put_slice(&HEADER);
        }
        frame.put_slice(part.deflated());
        self.trailer.add(part);
    }

    fn put_separator(&mut self, frame: &mut BytesMut) {
        if let Some(part) = &self.separator {
            frame.put_slice(part.deflated());
            self.trailer.add(part);
        }
    }
}

impl ListWriter {
    fn new(form: ListForm, objects: &Objects, metadata: &Value) -> Result<ListWriter, Status> {
        let kind = &form.resource.resource;
        let is_protobuf = form.accepted.media_type == MediaType::Protobuf;
        let is_cbor = form.accepted.media_type == MediaType::Cbor;
        let api_version = kind.resource.group_version().to_string();
        // Lists that are made of others keep only the fields of their position.
        let of_position = form.accepted.transform.as_ref().map(|_| without_shards(metadata));
        let metadata = of_position.as_ref().unwrap_or(metadata);
        let (items, head, foot) = match &form.accepted.transform {
            Some((Transform::Table, version)) => {
                let mut head = form.encoder().table(version).head(true, metadata);
                let is_null = kind.table.has_null_rows() && objects.rest().next().is_none();
                let foot = match is_null {
                    true => {
                        head.truncate(head.len() - 1);
                        b"null}\n".as_slice()
                    }
                    false => TABLE_FOOT,
                };
                (Items::TableRows, head.into_bytes(), foot.to_vec())
            }
            Some((Transform::PartialObjectMetadata, version)) => {
                let api_version = format!("meta.k8s.io/{version}");
                match is_protobuf {
                    _ if is_cbor => {
                        // Go encodes its nil slice as null.
                        let count = Some(objects.rest().count()).filter(|count| *count > 0);
                        let head = cbor::list_head(PARTIAL_LIST_KIND, count);
                        (Items::PartialCbor, head, cbor::list_foot(&api_version, metadata))
                    }
                    true => {
                        // `v1beta1` has the same fields with other numbers.
                        let (metadata_field, field) = if version == "v1beta1" { (2, 1) } else { (1, 2) };
                        let items = Items::PartialProtobuf { field };
                        let list = (PARTIAL_LIST_KIND, api_version.as_str());
                        let (head, foot) = sealed(&form, items, objects, metadata, metadata_field, list)?;
                        (items, head, foot)
                    }
                    false => {
                        let metadata = list_metadata(metadata);
                        let head = format!(
                            "{{\"kind\":\"{PARTIAL_LIST_KIND}\",\"apiVersion\":\"{api_version}\",\"metadata\":{metadata},\"items\":"
                        );
                        let is_empty = objects.rest().next().is_none();
                        // Go encodes its nil slice as null.
                        let (open, foot) = if is_empty { ("null", "}\n") } else { ("[", "]}\n") };
                        (Items::PartialJson, (head + open).into_bytes(), foot.as_bytes().to_vec())
                    }
                }
            }
            None if is_protobuf => {
                let list = (kind.list_kind.as_str(), api_version.as_str());
                let (head, foot) = sealed(&form, Items::Protobuf, objects, metadata, 1, list)?;
                (Items::Protobuf, head, foot)
            }
            None if is_cbor => {
                let with_type_meta = kind.model.lists_are_maps();
                let head = cbor::list_head(&kind.list_kind, Some(objects.rest().count()));
                let metadata = match with_type_meta {
                    true => list_metadata_of_maps(metadata),
                    false => metadata.clone(),
                };
                (Items::Cbor { with_type_meta }, head, cbor::list_foot(&api_version, &metadata))
            }
            None => {
                let (head, foot) = json_head_and_foot(&form.resource, metadata);
                let skip = match form.resource.resource.model.lists_are_maps() {
                    true => 1,
                    false => format!("{{\"kind\":\"{}\",\"apiVersion\":\"{api_version}\",", kind.kind).len(),
                };
                (Items::Json { skip }, head.into_bytes(), foot.into_bytes())
            }
        };
        let separator: &[u8] = if is_protobuf || is_cbor { b"" } else { b"," };
        let is_indented = form.accepted.pretty && form.accepted.media_type == MediaType::Json;
        let indenter = is_indented.then(Indenter::default);
        let encoder = form.encoder();
        let mut length = head.len() + foot.len();
        let is_long = |object| {
            let size: Option<usize> = items.size(&encoder, object);
            length += separator.len() + size.unwrap_or_default();
            // No separator is in front of the first item.
            size.is_none() || length - separator.len() > THRESHOLD
        };
        let is_sliced = matches!(items, Items::Json { .. } | Items::Protobuf) && indenter.is_none();
        let is_compressed = form.may_compress
            && is_sliced
            && form.accepted.media_type != MediaType::Yaml
            && objects.rest().any(is_long);
        let compressed = is_compressed.then(|| Compressed {
            trailer: Trailer::default(),
            separator: (!separator.is_empty()).then(|| Part::fast(&[separator])),
            is_begun: false,
        });
        drop(encoder);
        Ok(ListWriter { form, items, head, foot, separator, indenter, compressed })
    }

    /// The bytes of a frame in the negotiated form.
    fn finish(&mut self, frame: BytesMut) -> Bytes {
        match &mut self.indenter {
            None => frame.freeze(),
            Some(indenter) => indenter.indent(&frame),
        }
    }
}

const PARTIAL_LIST_KIND: &str = "PartialObjectMetadataList";

/// The bytes before and after the items of a protobuf list, which begins with its length.
fn sealed(
    form: &ListForm,
    items: Items,
    objects: &Objects,
    metadata: &Value,
    metadata_field: u32,
    (kind, api_version): (&str, &str),
) -> Result<(Vec<u8>, Vec<u8>), Status> {
    let encoder = form.encoder();
    let mut list_meta = Vec::new();
    protobuf::write_field(&mut list_meta, metadata_field, &encoder.protobuf_list_meta(metadata)?);
    let mut length = list_meta.len();
    for object in objects.rest() {
        let measure = || protobuf_item(&encoder, items, object).map(|(_, message)| message.len());
        let message = match items {
            Items::Protobuf => object.measured(encoder.representation(MediaType::Protobuf), measure),
            _ => measure(),
        };
        length += protobuf::field_len(message?);
    }
    let mut head = protobuf::seal_head(api_version, kind, length);
    let mut foot = Vec::new();
    // Fields are written in the order of their numbers.
    if metadata_field == 1 { &mut head } else { &mut foot }.extend_from_slice(&list_meta);
    foot.extend_from_slice(protobuf::SEAL_FOOT);
    Ok((head, foot))
}

/// An item of a protobuf list: its field number and its message.
fn protobuf_item(
    encoder: &Encoder<'_>,
    items: Items,
    object: &Arc<CachedObject>,
) -> Result<(u32, Bytes), Status> {
    match items {
        Items::PartialProtobuf { field } => Ok((field, encoder.partial_protobuf(object)?.into())),
        _ => {
            let body = encoder.protobuf_object(object)?;
            let raw = protobuf::open(&body).map_err(Status::internal_error)?.raw;
            Ok((2, body.slice_ref(raw)))
        }
    }
}

/// The metadata of a list without the shards it was restricted to.
fn without_shards(metadata: &Value) -> Value {
    let mut metadata = metadata.clone();
    if let Some(fields) = metadata.as_object_mut() {
        fields.remove(SHARD_INFO);
    }
    metadata
}

/// The metadata of a list that is a map, which always has a continue token.
fn list_metadata_of_maps(metadata: &Value) -> Value {
    let mut metadata = metadata.clone();
    if metadata.get("continue").is_none() {
        metadata.set("continue", "");
    }
    metadata
}

/// The bytes before and after the items of a JSON list.
fn json_head_and_foot(resource: &VersionedResource, metadata: &Value) -> (String, String) {
    let kind = &resource.resource;
    let version = kind.resource.group_version();
    match kind.model.lists_are_maps() {
        false => {
            let metadata = list_metadata(metadata);
            let list_kind = &kind.list_kind;
            let head = format!(
                "{{\"kind\":\"{list_kind}\",\"apiVersion\":\"{version}\",\"metadata\":{metadata},\"items\":["
            );
            (head, "]}\n".to_owned())
        }
        true => {
            let metadata = list_metadata_of_maps(metadata);
            let head = format!("{{\"apiVersion\":\"{version}\",\"items\":[");
            let foot = format!("],\"kind\":\"{}\",\"metadata\":{metadata}}}\n", kind.list_kind);
            (head, foot)
        }
    }
}
