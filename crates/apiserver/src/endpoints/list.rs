//! Lists: header, item bytes and footer from one snapshot.
//!
//! A list of any size takes constant memory: frames are filled from the snapshot as the connection takes them, and the
//! snapshot shares everything with the cache.

use super::{
    Exchange,
    encoding::{Encoder, IncludeObject, TableWriter, list_metadata, made_json, partial, partial_list},
    selection::Selection,
};
use crate::{
    body::Body,
    errors,
    negotiation::{MediaType, Offers, Transform},
    offload::{LIGHT, weigh},
    registry::{Store, VersionedResource},
    response::{Response, with_content_type},
};
use bytes::{BufMut, Bytes, BytesMut};
use futures_util::StreamExt as _;
use pintle_cacher::{CachedObject, CacherError, Freshness, Snapshot};
use pintle_machinery::{
    Status, Value, ValueExt,
    codec::protobuf,
    continue_token::ContinueToken,
    options::{ListOptions, ListStart},
};
use pintle_storage::{Key, Revision};
use serde_json::json;
use std::sync::Arc;

/// How many bytes a frame of a list holds at least, but for the last.
const FRAME_BYTES: usize = 128 * 1024;
/// A list shorter than this is sent as one piece of known length.
const BUFFERED_BYTES: usize = 2048;

/// Serves a GET of a collection.
///
/// # Errors
/// The `Status` for the client.
pub(super) async fn list(exchange: &Exchange<'_>) -> Result<Response, Status> {
    let accepted = exchange.accepted(Offers::List)?;
    let include_object = IncludeObject::parse(exchange.query.first("includeObject"))?;
    let mut options = ListOptions::parse(exchange.query.pairs())?;
    if !exchange.info.name.is_empty() {
        options.select_name(&exchange.info.name)?;
    }
    let store = exchange.store()?;
    let selection = Arc::new(Selection::parse(exchange, &options)?);
    let page = select(store, exchange, &options, selection).await?;
    let unreadable = page.unreadable();
    if unreadable > 0 {
        // The reference answers nothing at all then. Here one bad value takes no other away, but not silently.
        let resource = exchange.resource.resource.group_resource();
        exchange.warnings.add(format!(
            "{unreadable} {resource} could not be read from storage and are missing from this list"
        ));
    }
    let encoder = Encoder { resource: exchange.resource, accepted, include_object, now: exchange.now };
    let content_type = encoder.accepted.media_type;
    let is_slices = encoder.is_cached_json();
    if !is_slices || exchange.resource.resource.converter.is_some() {
        weigh(page.size()).await;
    }
    encoder.convert(page.objects(None)).await?;
    let body = match is_slices {
        true => stream(store, exchange, page),
        false => Body::from(whole(&encoder, &page)?),
    };
    Ok(with_content_type(200, content_type.as_str(), body))
}

/// What a list answers.
pub(super) struct Page {
    pub(super) snapshot: Snapshot,
    pub(super) prefix: String,
    pub(super) after: Option<Key>,
    pub(super) selection: Arc<Selection>,
    /// The last key of the page, when there are more.
    pub(super) last: Option<Key>,
    pub(super) metadata: Value,
}

impl Page {
    /// How many bytes the objects have, as far as it matters to [`weigh`].
    fn size(&self) -> usize {
        let mut size = 0;
        for object in self.objects(None) {
            size += object.json().len();
            if size > LIGHT {
                break;
            }
        }
        size
    }

    /// How many objects might belong to the page and cannot be read.
    fn unreadable(&self) -> usize {
        let within = |key: &Key| {
            self.after.as_ref().is_none_or(|after| key > after)
                && self.last.as_ref().is_none_or(|last| key <= last)
        };
        self.snapshot.unreadable_range(&self.prefix).filter(|(key, _)| within(key)).count()
    }

    /// The objects of the page, after a key.
    pub(super) fn objects<'a>(
        &'a self,
        after: Option<&'a Key>,
    ) -> impl Iterator<Item = &'a Arc<CachedObject>> + 'a {
        let last = self.last.as_ref();
        self.snapshot
            .range(&self.prefix, after.or(self.after.as_ref()))
            .take_while(move |object| last.is_none_or(|last| object.key() <= last))
            .filter(|object| self.selection.matches(object))
    }
}

/// Finds the snapshot and the part of it that a list is about.
pub(super) async fn select(
    store: &Store,
    exchange: &Exchange<'_>,
    options: &ListOptions,
    selection: Arc<Selection>,
) -> Result<Page, Status> {
    let prefix = match &selection.name {
        // A selector for one name reads one key; the prefix is the key itself, filtered by the selection.
        Some(name) if !store.resource().is_namespaced() || !exchange.info.namespace.is_empty() => {
            store.key(&exchange.info.namespace, name).as_str().to_owned()
        }
        _ => store.key_prefix(&exchange.info.namespace),
    };
    let base = store.key_prefix(&exchange.info.namespace);
    let start = options.start(&base)?;
    let mut after = None;
    let cacher = store.cacher();
    let snapshot = match &start {
        ListStart::Latest => cacher.list(&prefix, Freshness::Consistent).await.map_err(errors::cacher)?,
        ListStart::Any => cacher.list(&prefix, Freshness::Any).await.map_err(errors::cacher)?,
        ListStart::NotOlderThan(revision) => {
            let freshness = Freshness::NotOlderThan(Revision(*revision));
            cacher.list(&prefix, freshness).await.map_err(errors::cacher)?
        }
        ListStart::Exact(revision) => exact(store, &prefix, Revision(*revision)).await?,
        ListStart::Continue(token) => {
            after = Some(Key::new(token.start_key.trim_end_matches('\0')));
            match token.resource_version {
                // Begun again after the history was gone: the newest state, from the same place on.
                None => cacher.list(&prefix, Freshness::Consistent).await.map_err(errors::cacher)?,
                Some(revision) => match cacher.list_at(&prefix, Revision(revision)).await {
                    Err(CacherError::Expired { .. }) => return Err(expired_token(&base, &token.start_key)),
                    snapshot => snapshot.map_err(errors::cacher)?,
                },
            }
        }
    };
    let mut page = Page {
        metadata: json!({"resourceVersion": snapshot.revision().to_string()}),
        snapshot,
        prefix,
        after,
        selection,
        last: None,
    };
    // The reference serves a list from its cache whole, whatever the limit.
    if options.limit > 0 && (start != ListStart::Any || !cacher.is_read_cached()) {
        limit(store, exchange, &mut page, options.limit);
    }
    Ok(page)
}

async fn exact(store: &Store, prefix: &str, revision: Revision) -> Result<Snapshot, Status> {
    store.cacher().list_at(prefix, revision).await.map_err(|error| match error {
        CacherError::Expired { .. } => {
            Status::expired("The resourceVersion for the provided list is too old.")
        }
        error => errors::cacher(error),
    })
}

/// Cuts the page after `limit` objects and says how to go on.
fn limit(store: &Store, exchange: &Exchange<'_>, page: &mut Page, limit: usize) {
    let mut objects = page.objects(None);
    let Some(last) = objects.by_ref().take(limit).last().map(|object| object.key().clone()) else { return };
    let rest = objects.next().is_some();
    drop(objects);
    if !rest {
        return;
    }
    let base = store.key_prefix(&exchange.info.namespace);
    let token =
        ContinueToken { resource_version: Some(page.snapshot.revision().0), start_key: format!("{last}\0") };
    let mut metadata = json!({
        "resourceVersion": page.snapshot.revision().to_string(),
        "continue": token.encode(&base),
    });
    // With a selector nobody knows how many of the rest match.
    if page.selection.is_everything() {
        let remaining = page.snapshot.count(&page.prefix, Some(&last));
        if let Some(metadata) = metadata.as_object_mut() {
            metadata.insert("remainingItemCount".to_owned(), remaining.into());
        }
    }
    page.metadata = metadata;
    page.last = Some(last);
}

/// 410 for a token whose revision is gone, with a token to go on from the newest state.
fn expired_token(prefix: &str, start_key: &str) -> Status {
    let token = ContinueToken { resource_version: None, start_key: start_key.to_owned() };
    let mut status = Status::expired(
        "The provided continue parameter is too old to display a consistent list result. You can start a new list \
         without the continue parameter, or use the continue token in this response to retrieve the remainder of the \
         results. Continuing with the provided token results in an inconsistent list - objects that were created, \
         modified, or deleted between the time the first chunk was returned and now may show up in the list.",
    );
    status.continue_token = Some(token.encode(prefix));
    status
}

/// The fast path: JSON as the cache holds it.
fn stream(store: &Store, exchange: &Exchange<'_>, page: Page) -> Body {
    let (head, foot) = head_and_foot(exchange.resource, &page.metadata);
    let skip = store.type_meta().len();
    let resource = exchange.resource_arc();
    let frames = Frames { page, resource, after: None, head: Some(head), foot, first: true, skip };
    let (first, rest) = frames.next();
    match rest {
        // Go's server tells the length of what fits into its buffer.
        None if first.len() < BUFFERED_BYTES => Body::from(first),
        rest => {
            let rest = futures_util::stream::unfold(rest, |rest| std::future::ready(rest.map(Frames::next)));
            Body::stream(futures_util::stream::iter([first]).chain(rest))
        }
    }
}

/// What comes before and behind the items of a list as JSON: of custom resources sorted by key, as Go writes maps.
fn head_and_foot(resource: &VersionedResource, metadata: &Value) -> (String, String) {
    let kind = &resource.resource;
    let version = kind.resource.group_version();
    match resource.schema.is_custom() {
        false => {
            let metadata = list_metadata(metadata);
            let list_kind = &kind.list_kind;
            let head = format!(
                "{{\"kind\":\"{list_kind}\",\"apiVersion\":\"{version}\",\"metadata\":{metadata},\"items\":["
            );
            (head, "]}\n".to_owned())
        }
        true => {
            let mut metadata = metadata.clone();
            if metadata.get("continue").is_none() {
                metadata.set("continue", "");
            }
            let head = format!("{{\"apiVersion\":\"{version}\",\"items\":[");
            let foot = format!("],\"kind\":\"{}\",\"metadata\":{metadata}}}\n", kind.list_kind);
            (head, foot)
        }
    }
}

/// A list on its way to the client.
struct Frames {
    page: Page,
    resource: Arc<VersionedResource>,
    after: Option<Key>,
    head: Option<String>,
    foot: String,
    first: bool,
    skip: usize,
}

impl Frames {
    fn next(mut self) -> (Bytes, Option<Frames>) {
        let mut frame = BytesMut::with_capacity(FRAME_BYTES + 16 * 1024);
        if let Some(head) = self.head.take() {
            frame.put_slice(head.as_bytes());
        }
        let mut after = None;
        let mut full = false;
        for object in self.page.objects(self.after.as_ref()) {
            // It was converted before; what cannot be shown leaves no gap that looks like an object.
            let Some(json) = made_json(&self.resource, object) else { continue };
            if !self.first {
                frame.put_u8(b',');
            }
            self.first = false;
            let end = json.len().saturating_sub(1);
            frame.put_u8(b'{');
            frame.put_slice(json.get(self.skip..end).unwrap_or_default());
            if frame.len() >= FRAME_BYTES {
                after = Some(object.key().clone());
                full = true;
                break;
            }
        }
        if full {
            self.after = after;
            return (frame.freeze(), Some(self));
        }
        frame.put_slice(self.foot.as_bytes());
        (frame.freeze(), None)
    }
}

/// Every other form: in one piece.
fn whole(encoder: &Encoder<'_>, page: &Page) -> Result<Bytes, Status> {
    match &encoder.accepted.transform {
        Some((Transform::Table, version)) => {
            let mut table = TableWriter::new(encoder, version, true);
            table.begin(&page.metadata);
            for object in page.objects(None) {
                table.row(&encoder.tree(object)?)?;
            }
            encoder.finish_json(table.end())
        }
        Some((Transform::PartialObjectMetadata, version)) => {
            let mut items = Vec::new();
            for object in page.objects(None) {
                items.push(partial(&encoder.tree(object)?, version));
            }
            let items = if items.is_empty() { Value::Null } else { Value::Array(items) };
            partial_list(version, &page.metadata, items, &encoder.accepted)
        }
        None => match encoder.accepted.media_type {
            MediaType::Protobuf => protobuf_list(encoder, page.objects(None), &page.metadata),
            MediaType::Json | MediaType::Yaml => {
                encoder.finish_json(json_list(encoder, page.objects(None), &page.metadata)?)
            }
        },
    }
}

/// A whole list as JSON.
pub(super) fn json_list<'a>(
    encoder: &Encoder<'_>,
    objects: impl Iterator<Item = &'a Arc<CachedObject>>,
    metadata: &Value,
) -> Result<Bytes, Status> {
    let kind = &encoder.resource.resource;
    let version = kind.resource.group_version();
    let mut out = BytesMut::new();
    let (head, foot) = head_and_foot(encoder.resource, metadata);
    out.put_slice(head.as_bytes());
    let skip = match encoder.resource.schema.is_custom() {
        true => 1,
        false => format!("{{\"kind\":\"{}\",\"apiVersion\":\"{version}\",", kind.kind).len(),
    };
    for (index, object) in objects.enumerate() {
        if index > 0 {
            out.put_u8(b',');
        }
        let json = encoder.json(object)?;
        let end = json.len().saturating_sub(1);
        out.put_u8(b'{');
        out.put_slice(json.get(skip..end).unwrap_or_default());
    }
    out.put_slice(foot.as_bytes());
    Ok(out.freeze())
}

/// A list as a protobuf message: `metadata` is field 1 and every item is field 2 of every list type.
pub(super) fn protobuf_list<'a>(
    encoder: &Encoder<'_>,
    objects: impl Iterator<Item = &'a Arc<CachedObject>>,
    metadata: &Value,
) -> Result<Bytes, Status> {
    let kind = &encoder.resource.resource;
    let mut message = Vec::new();
    protobuf::write_field(&mut message, 1, &encoder.protobuf_list_meta(metadata)?);
    for object in objects {
        let body = encoder.protobuf_object(object)?;
        let item = protobuf::open(&body).map_err(Status::internal_error)?;
        protobuf::write_field(&mut message, 2, item.raw);
    }
    Ok(protobuf::seal(&kind.resource.group_version().to_string(), &kind.list_kind, &message).into())
}
