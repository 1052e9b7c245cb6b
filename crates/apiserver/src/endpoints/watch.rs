//! Serves watches: streams shared frames until the client or the timeout ends the watch.

use super::{
    encoder::{Encoder, INITIAL_EVENTS_END, IncludeObject, partial, partial_schema},
    request_scope::RequestScope,
    selection::Selection,
};
use crate::{
    base::{
        body::Body,
        deadline::SendDeadline,
        encoding::{encode, encode_status},
        negotiation::{Accepted, MediaType, Offers, Transform, only},
        response::{Response, SharedFrames, with_content_type},
        stop::stopped,
        websocket,
    },
    errors,
    filters::WatchTicket,
    metrics::{InitialEvents, WatchSeries},
    registry::{Store, VersionedResource},
};
use bytes::{Bytes, BytesMut};
use jiff::Timestamp;
use pintle_cacher::{
    CachedObject, CacherError, CacherMetrics, EventType, Freshness, Held, Predicate, RepresentationId,
    WatchEvent, WatchItem, WatchOptions, WatchScope, WatchStart, Watcher,
};
use pintle_machinery::{GroupVersionResource, Status, ValueExt, json, options::ListOptions};
use pintle_offload::{LIGHT, beside};
use pintle_storage::Revision;
use pintle_websocket::{Opcode, is_websocket_request, put_frame, put_header};
use rand::Rng;
use std::{
    collections::VecDeque,
    pin::Pin,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};
use tokio::time::{Instant, timeout_at};

/// The maximum timeout of a watch: timers do not reach as far as a client's `timeoutSeconds`.
const MAX_WATCH_TIME: Duration = Duration::from_secs(365 * 24 * 3600);

/// How long a watch may take to send its end after its timeout.
const END_TIME: Duration = Duration::from_secs(10);

/// The cache waits three seconds for the revision of the initial events, also in a watch that is to end sooner.
const REVISION_TIME: Duration = Duration::from_secs(4);

/// The media type of a watch in CBOR, whose events are data items in a row
/// (<https://www.rfc-editor.org/rfc/rfc8742.html>).
const CBOR_SEQUENCE: &str = "application/cbor-seq";

/// The number of items in one frame.
const BATCH: usize = 256;
/// The size at which a frame gets no more items, in bytes: a client that does not read holds one frame and one event.
const FRAME_BYTES: usize = 128 * 1024;
/// The length in front of an event in protobuf, in bytes.
const LENGTH_BYTES: usize = 4;
/// The bytes of object JSON at which a frame gets no more items, however small its encoding of them.
const READ_BYTES: usize = 8 * LIGHT;

/// The bytes of forms made for one watch that it may keep between two frames without being [held](Held): twice those of
/// a batch whose converted objects are as large as the stored ones.
const OWN_BYTES: usize = 1 << 20;

/// Serves a watch of a collection (or of one object, as a collection of one).
///
/// # Errors
/// The `Status` for the client. A failure after the stream has started is sent as an ERROR event.
pub(super) async fn watch(scope: &RequestScope<'_>) -> Result<Response, Status> {
    let (mut accepted, mut include_object) = scope.form(Offers::Object)?;
    let has_list_form = accepted.refusal.is_some();
    if has_list_form {
        (accepted, include_object) = scope.form(Offers::List)?;
    }
    let options = scope.list_options()?;
    let store = scope.store()?.clone();
    let selection = Arc::new(Selection::parse_with_shards(scope, &options)?);
    let time = match options.timeout_seconds.filter(|seconds| *seconds != 0) {
        // A negative time is over at once.
        Some(seconds) => Duration::from_secs(u64::try_from(seconds).unwrap_or_default()).min(MAX_WATCH_TIME),
        // Up to twice as long, so that not all clients reconnect at once.
        None => {
            scope.server.min_request_timeout.mul_f64(rand::rng().random_range(1.0..2.0)).min(MAX_WATCH_TIME)
        }
    };
    let deadline = Instant::now() + time;
    let watch_scope = match selection.namespace_within(&scope.info.namespace, store.resource()) {
        namespace if namespace.is_empty() || !store.resource().is_namespaced() => WatchScope::All,
        namespace => WatchScope::Namespace(namespace.into()),
    };
    let watch_options = WatchOptions {
        start: start(&options)?,
        scope: watch_scope,
        trigger: selection.trigger(),
        predicate: (!selection.is_everything()).then(|| predicate(&selection, &store)),
        has_slow_predicate: selection.is_long(),
        bookmarks: options.allow_watch_bookmarks,
        deadline: Some(deadline),
    };
    if let Some(refusal) = accepted.refusal {
        return Err(*refusal);
    }
    // Clients split events at newlines, so that `pretty` does not apply.
    let accepted = Accepted { pretty: false, ..accepted };
    let media_type = accepted.media_type;
    let content_type = match media_type {
        MediaType::Json => "application/json",
        MediaType::Yaml => {
            let mut streams =
                vec!["application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch"];
            streams.extend(scope.server.media_types.has_cbor().then_some(CBOR_SEQUENCE));
            return Err(only(&streams));
        }
        MediaType::Protobuf => "application/vnd.kubernetes.protobuf;stream=watch",
        MediaType::Cbor => CBOR_SEQUENCE,
    };
    let mut stream = WatchStream {
        resource: scope.resource_arc(),
        accepted,
        include_object,
        is_cached_json: false,
        has_list_form,
        selection: selection.waits().then(|| selection.clone()),
        batch: Vec::new(),
        items: VecDeque::new(),
        held: None,
        columns_sent: false,
        web_socket: is_websocket_request(scope.headers).then_some(match media_type {
            MediaType::Protobuf => WebSocketForm { opcode: Opcode::Binary, skip: LENGTH_BYTES },
            MediaType::Cbor => WebSocketForm { opcode: Opcode::Binary, skip: 0 },
            MediaType::Json | MediaType::Yaml => WebSocketForm { opcode: Opcode::Text, skip: 0 },
        }),
        payload: None,
        over: Box::pin(over(deadline, scope.server.shutdown.clone())),
        watcher: None,
        shards: None,
        failed: None,
        ticket: scope.watch_ticket.clone(),
        has_begun: false,
        metrics: metrics_of(scope),
        initial: (options.send_initial_events == Some(true)).then(|| initial_events(scope)),
    };
    let limit = match watch_options.start {
        WatchStart::InitialEvents(Freshness::NotOlderThan(_)) => deadline.max(Instant::now() + REVISION_TIME),
        _ => deadline,
    };
    match timeout_at(limit, store.cacher().watch(watch_options)).await {
        // The store does not answer.
        Err(_) => stream.failed = Some(internal_error("context deadline exceeded".to_owned())),
        Ok(Ok(watcher)) => {
            stream.shards = selection.shards().map(|_| ShardWatch::begin(store.cacher().metrics()));
            stream.watcher = (!time.is_zero()).then_some(watcher);
        }
        Ok(Err(CacherError::Stopped)) => {
            return Err(Status::service_unavailable("apiserver is shutting down"));
        }
        Ok(Err(CacherError::Expired { .. })) if !store.cacher().is_read_cached() => {
            let message = "The resourceVersion for the provided watch is too old.";
            stream.failed = Some(Status::expired(message));
        }
        Ok(Err(CacherError::Storage(error))) => stream.failed = Some(internal_error(error.to_string())),
        Ok(Err(error)) => stream.failed = Some(errors::cacher(error)),
    }
    stream.is_cached_json = stream.encoder().is_cached_json();
    stream.note_progress();
    let is_web_socket = stream.web_socket.is_some();
    let body = Body::stream(futures_util::stream::unfold(stream, WatchStream::next));
    let mut response = match is_web_socket {
        false => with_content_type(200, content_type, body),
        true => match websocket::accept(scope.headers, body) {
            Ok(response) => response,
            Err(refusal) => return Ok(*refusal),
        },
    };
    response.extensions_mut().insert(SharedFrames);
    // A client that still reads gets the end of the stream.
    response.extensions_mut().insert(SendDeadline(deadline.max(Instant::now()) + END_TIME));
    Ok(response)
}

/// The failure of a store, as the reference's cache tells it to a watch.
fn internal_error(message: String) -> Status {
    Status { message, details: None, ..Status::internal_error("") }
}

/// The test of an object by a watch.
fn predicate(selection: &Arc<Selection>, store: &Store) -> Predicate {
    let selection = selection.clone();
    let metrics = store.cacher().metrics().clone();
    Arc::new(move |object| {
        if selection.shards().is_some_and(|shards| !shards.matches(object)) {
            metrics.shard_filtered_events.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        selection.may_match_terms(object)
    })
}

/// An item for a watch whose selection waits for conversions: with the type of the change as the watch sees it, `None`
/// if it does not see the change. The objects of the item are prepared.
fn selected(selection: &Selection, item: WatchItem) -> Option<WatchItem> {
    let WatchItem::Event { event_type, event } = item else { return Some(item) };
    let matches = |object: Option<&Arc<CachedObject>>| object.is_some_and(|it| selection.matches_terms(it));
    let was = event_type != EventType::Added && matches(event.previous());
    let is = event_type != EventType::Deleted && matches(event.current());
    let event_type = match (was, is) {
        (false, false) => return None,
        (false, true) => EventType::Added,
        (true, true) => EventType::Modified,
        (true, false) => EventType::Deleted,
    };
    Some(WatchItem::Event { event_type, event })
}

/// Counts a watch of shards while it is open.
struct ShardWatch(Arc<CacherMetrics>);

impl ShardWatch {
    fn begin(metrics: &Arc<CacherMetrics>) -> ShardWatch {
        metrics.shard_watches_begun.fetch_add(1, Ordering::Relaxed);
        ShardWatch(metrics.clone())
    }
}

impl Drop for ShardWatch {
    fn drop(&mut self) {
        self.0.shard_watches_ended.fetch_add(1, Ordering::Relaxed);
    }
}

/// The metrics of watches of the resource.
fn metrics_of(scope: &RequestScope<'_>) -> Arc<WatchSeries> {
    let found = scope.resource.series.watches.get_or_init(|| {
        let GroupVersionResource { group, version, resource } = &scope.resource.resource.resource;
        Arc::new(scope.server.metrics.watches().of(group, version, resource))
    });
    found.clone()
}

fn initial_events(scope: &RequestScope<'_>) -> InitialEvents {
    let GroupVersionResource { group, version, resource } = &scope.resource.resource.resource;
    InitialEvents {
        received: Instant::now(),
        duration: scope.server.metrics.watches().initial(group, version, resource, scope.info.scope()),
    }
}

fn start(options: &ListOptions) -> Result<WatchStart, Status> {
    let version = options.watch_revision()?.map(Revision);
    let freshness = match version {
        None => Freshness::Consistent,
        Some(Revision(0)) => Freshness::Any,
        Some(revision) => Freshness::NotOlderThan(revision),
    };
    Ok(match (options.send_initial_events, version) {
        (Some(true), _) => WatchStart::InitialEvents(freshness),
        (Some(false), None | Some(Revision(0))) => WatchStart::Now(freshness),
        (None, None | Some(Revision(0))) => WatchStart::State,
        (_, Some(revision)) => WatchStart::After(revision),
    })
}

/// Waits for the watch's timeout or the server's shutdown.
async fn over(deadline: Instant, mut shutdown: tokio::sync::watch::Receiver<bool>) {
    tokio::select! {
        () = tokio::time::sleep_until(deadline) => {}
        () = stopped(&mut shutdown) => {}
    }
}

/// The form of events in the frames of a WebSocket connection.
#[derive(Debug, Clone, Copy)]
struct WebSocketForm {
    opcode: Opcode,
    /// The bytes in front of an event that only an unframed stream needs.
    skip: usize,
}

/// The event stream of one client.
struct WatchStream {
    resource: Arc<VersionedResource>,
    accepted: Accepted,
    include_object: IncludeObject,
    /// Whether objects are sent as cached.
    is_cached_json: bool,
    /// Whether the client wants objects in a form that only lists have: the first event ends the watch.
    has_list_form: bool,
    /// The selection, if it waits for conversions.
    selection: Option<Arc<Selection>>,
    /// The next items from the watcher.
    batch: Vec<WatchItem>,
    /// Items that are not sent yet.
    items: VecDeque<WatchItem>,
    /// The same between two frames, if they take much memory.
    held: Option<Held<VecDeque<WatchItem>>>,
    columns_sent: bool,
    /// The frames of events in a WebSocket connection, where each event has a frame of its own.
    web_socket: Option<WebSocketForm>,
    /// The payload of the last frame, which had the header alone.
    payload: Option<Bytes>,
    /// Ready when the watch has to end. Allocated once per watch, not once per event.
    over: Pin<Box<dyn Future<Output = ()> + Send + Sync>>,
    watcher: Option<Watcher>,
    /// Counts the watch if it is one of shards.
    shards: Option<ShardWatch>,
    failed: Option<Status>,
    /// The watch's registration and seat in flow control.
    ticket: Option<Arc<WatchTicket>>,
    has_begun: bool,
    metrics: Arc<WatchSeries>,
    /// Records when the initial events are sent, if the client wants to know their end.
    initial: Option<InitialEvents>,
}

impl WatchStream {
    /// The next frame: as many ready events as one frame takes. `None` ends the stream.
    async fn next(mut self) -> Option<(Bytes, WatchStream)> {
        if let Some(payload) = self.payload.take() {
            return Some((payload, self));
        }
        if let Some(status) = self.failed.take() {
            return Some((self.error_frame(&status), self));
        }
        if let Some(held) = self.held.take() {
            let Some(items) = held.take() else {
                tracing::warn!("a watch ends: its client is slow, and memory is short");
                return None;
            };
            self.items = items;
        }
        loop {
            if self.items.is_empty() {
                let watcher = self.watcher.as_mut()?;
                let more = tokio::select! {
                    biased;
                    () = &mut self.over => false,
                    more = watcher.next_batch(BATCH, &mut self.batch) => more,
                };
                if !more && self.batch.is_empty() {
                    return None;
                }
                if !more {
                    self.watcher = None;
                }
                self.note_progress();
                if self.resource.resource.converter.is_some() {
                    self.events().for_each(|event| event.open());
                }
                if let Err(status) = self.select().await {
                    return Some((self.fail(&status), self));
                }
                if self.has_list_form && !self.batch.is_empty() {
                    return None;
                }
                self.items.extend(self.batch.drain(..));
                if let Err(status) = self.convert().await {
                    return Some((self.fail(&status), self));
                }
            }
            let frames = match self.is_heavy() {
                false => self.frames(),
                true => {
                    let frames;
                    (frames, self) = beside(move || (self.frames(), self)).await;
                    frames
                }
            };
            match frames {
                Ok(frames) if frames.is_empty() => {}
                Ok(frames) => {
                    self.hold();
                    return Some((frames, self));
                }
                Err(status) => return Some((self.fail(&status), self)),
            }
        }
    }

    /// Holds the items that are not sent yet, if the forms that were made of them alone take much memory: converters decide
    /// how large these are.
    fn hold(&mut self) {
        let bytes = self.items.iter().map(WatchItem::own_bytes).sum();
        if bytes > OWN_BYTES
            && let Some(store) = &self.resource.store
        {
            self.held = Some(store.cacher().hold_apart(bytes, std::mem::take(&mut self.items)));
        }
    }

    /// Whether encoding the next frame is long work: large objects that are not sent as cached.
    fn is_heavy(&self) -> bool {
        let mut read = 0;
        !self.is_cached_json
            && self.items.iter().any(|item| {
                read += size_of_object(item);
                read > LIGHT
            })
    }

    /// The last frame of a failed watch, an ERROR event.
    fn fail(&mut self, status: &Status) -> Bytes {
        self.watcher = None;
        self.items.clear();
        self.error_frame(status)
    }

    /// Releases the seat in flow control when the initial events are delivered: the watch costs little from then on.
    fn note_progress(&mut self) {
        let is_beginning = self.watcher.as_ref().is_some_and(Watcher::is_delivering_state);
        if !is_beginning
            && !std::mem::replace(&mut self.has_begun, true)
            && let Some(ticket) = &self.ticket
        {
            ticket.initialized();
        }
    }

    /// The events of the batch.
    fn events(&self) -> impl Iterator<Item = &Arc<WatchEvent>> {
        self.batch.iter().filter_map(|item| match item {
            WatchItem::Event { event, .. } => Some(event),
            WatchItem::Bookmark { .. } => None,
        })
    }

    /// Drops the items of the batch that the selection does not match, if it had to wait for their conversion.
    async fn select(&mut self) -> Result<(), Status> {
        let Some(selection) = &self.selection else { return Ok(()) };
        let objects: Vec<_> =
            self.events().flat_map(|event| [event.previous(), event.current()]).flatten().collect();
        selection.prepare(objects.into_iter()).await?;
        let items = std::mem::take(&mut self.batch);
        self.batch = items.into_iter().filter_map(|item| selected(selection, item)).collect();
        Ok(())
    }

    /// Converts the objects of the items to the watch's version, in batches.
    async fn convert(&self) -> Result<(), Status> {
        if self.resource.resource.converter.is_none() {
            return Ok(());
        }
        let objects = self.items.iter().filter_map(|item| match item {
            WatchItem::Event { event_type, event } => event.object(*event_type),
            WatchItem::Bookmark { .. } => None,
        });
        let objects: Vec<Arc<CachedObject>> = objects.cloned().collect();
        self.encoder().convert(&objects).await
    }

    fn encoder(&self) -> Encoder<'_> {
        Encoder {
            resource: &self.resource,
            accepted: self.accepted.clone(),
            include_object: self.include_object,
            now: Timestamp::now(),
        }
    }

    /// The bytes of the next items, as many as one frame takes.
    fn frames(&mut self) -> Result<Bytes, Status> {
        let Some(item) = self.items.pop_front() else { return Ok(Bytes::new()) };
        // Single frames are shared between watches; only several small ones are copied into one.
        let first = self.frame(&item)?;
        let mut out = match self.web_socket {
            Some(form) if first.len() >= FRAME_BYTES => {
                let payload = payload(form, first);
                let mut header = BytesMut::new();
                put_header(&mut header, form.opcode, payload.len());
                self.payload = Some(payload);
                return Ok(header.freeze());
            }
            None if self.items.is_empty() || first.len() >= FRAME_BYTES => return Ok(first),
            None => {
                let more: usize = self.items.iter().map(size_of_object).sum();
                let mut out = BytesMut::with_capacity(first.len() + more.min(FRAME_BYTES));
                out.extend_from_slice(&first);
                out
            }
            Some(form) => in_frame(form, first),
        };
        let mut read = size_of_object(&item);
        while out.len() < FRAME_BYTES
            && read < READ_BYTES
            && let Some(item) = self.items.pop_front()
        {
            read += size_of_object(&item);
            let frame = self.frame(&item)?;
            match self.web_socket {
                None => out.extend_from_slice(&frame),
                Some(form) => put_frame(&mut out, form.opcode, &payload(form, frame)),
            }
        }
        Ok(out.freeze())
    }

    fn frame(&mut self, item: &WatchItem) -> Result<Bytes, Status> {
        let frame = self.encoded(item)?;
        self.metrics.sent(frame.len());
        if let WatchItem::Bookmark { initial_events_end: true, .. } = item
            && let Some(initial) = self.initial.take()
        {
            initial.sent();
        }
        Ok(frame)
    }

    fn encoded(&mut self, item: &WatchItem) -> Result<Bytes, Status> {
        let encoder = Encoder {
            resource: &self.resource,
            accepted: self.accepted.clone(),
            include_object: self.include_object,
            now: Timestamp::now(),
        };
        match item {
            WatchItem::Event { event_type, event } => match &encoder.accepted.transform {
                None => event.frame(*event_type, encoder.representation(encoder.accepted.media_type), || {
                    plain_frame(&encoder, *event_type, event)
                }),
                Some((Transform::PartialObjectMetadata, _)) => {
                    let make = || {
                        let object = event_object(event, *event_type)?;
                        let tree = encoder.partial_tree(object)?;
                        let bytes = encode(&tree, partial_schema(), &encoder.accepted)?;
                        Ok(encoder.event(event_type.as_str(), bytes))
                    };
                    match encoder.partial_representation() {
                        Some(id) => event.frame(*event_type, id, make),
                        None => make(),
                    }
                }
                Some((Transform::Table, version)) => {
                    let with_columns = !std::mem::replace(&mut self.columns_sent, true);
                    match encoder.row_representation().filter(|_| !with_columns) {
                        Some(id) => shared_row(&encoder, version, *event_type, event, id),
                        None => table_frame(&encoder, version, with_columns, *event_type, event),
                    }
                }
            },
            WatchItem::Bookmark { revision, initial_events_end } => {
                let bytes = bookmark(&encoder, *revision, *initial_events_end, &mut self.columns_sent)?;
                Ok(encoder.event("BOOKMARK", bytes))
            }
        }
    }

    fn error_frame(&self, status: &Status) -> Bytes {
        let encoder = Encoder {
            resource: &self.resource,
            accepted: Accepted { transform: None, ..self.accepted.clone() },
            include_object: self.include_object,
            now: Timestamp::now(),
        };
        let frame = encoder.event("ERROR", encode_status(status, &encoder.accepted));
        self.metrics.sent(frame.len());
        match self.web_socket {
            None => frame,
            Some(form) => in_frame(form, frame).freeze(),
        }
    }
}

/// An event in a WebSocket frame.
fn in_frame(form: WebSocketForm, event: Bytes) -> BytesMut {
    let mut frame = BytesMut::new();
    put_frame(&mut frame, form.opcode, &payload(form, event));
    frame
}

/// The payload of a WebSocket frame for an event. A length in front of the event is that of the frame.
fn payload(form: WebSocketForm, event: Bytes) -> Bytes {
    event.slice(form.skip.min(event.len())..)
}

/// The JSON bytes of an item's object.
fn size_of_object(item: &WatchItem) -> usize {
    match item {
        WatchItem::Event { event_type, event } => event.object(*event_type).map_or(0, |object| object.size()),
        WatchItem::Bookmark { .. } => 0,
    }
}

fn event_object(event: &WatchEvent, event_type: EventType) -> Result<&Arc<CachedObject>, Status> {
    event.object(event_type).ok_or_else(|| Status::internal_error("a watch event without its object"))
}

fn plain_frame(encoder: &Encoder<'_>, event_type: EventType, event: &WatchEvent) -> Result<Bytes, Status> {
    let object = event_object(event, event_type)?;
    Ok(encoder.event(event_type.as_str(), encoder.object(object)?))
}

/// The event with a table of one row.
fn table_frame(
    encoder: &Encoder<'_>,
    version: &str,
    with_columns: bool,
    event_type: EventType,
    event: &WatchEvent,
) -> Result<Bytes, Status> {
    let object = event_object(event, event_type)?;
    let metadata = json!({"resourceVersion": object.revision().to_string()});
    let table = encoder.table(version).of_one(with_columns, &metadata, &encoder.row_tree(object)?);
    Ok(encoder.event(event_type.as_str(), table))
}

/// The event with a row that watches share within a second: its ages, in seconds at best, are relative to the time of
/// encoding, which the shared bytes begin with.
fn shared_row(
    encoder: &Encoder<'_>,
    version: &str,
    event_type: EventType,
    event: &WatchEvent,
    id: RepresentationId,
) -> Result<Bytes, Status> {
    let second = encoder.now.as_second().to_be_bytes();
    let shared = event.frame(event_type, id, || {
        let frame = table_frame(encoder, version, false, event_type, event)?;
        let mut stamped = BytesMut::with_capacity(second.len() + frame.len());
        stamped.extend_from_slice(&second);
        stamped.extend_from_slice(&frame);
        Ok::<_, Status>(stamped.freeze())
    })?;
    match shared.starts_with(&second) {
        true => Ok(shared.slice(second.len()..)),
        false => table_frame(encoder, version, false, event_type, event),
    }
}

/// The object of a bookmark: an empty object of the kind with a resourceVersion.
fn bookmark(
    encoder: &Encoder<'_>,
    revision: Revision,
    initial_events_end: bool,
    columns_sent: &mut bool,
) -> Result<Bytes, Status> {
    let resource = &encoder.resource.resource;
    let mut object = json!({
        "kind": resource.kind,
        "apiVersion": resource.resource.group_version().to_string(),
        "metadata": {"resourceVersion": revision.to_string()},
    });
    if initial_events_end {
        object.set("metadata.annotations", json!({INITIAL_EVENTS_END: "true"}));
    }
    for path in resource.plain_integers {
        object.set(path, 0);
    }
    for name in resource.integer_annotations {
        object.object_at_mut("metadata.annotations").insert((*name).to_owned(), "0".into());
    }
    match &encoder.accepted.transform {
        Some((Transform::Table, version)) => {
            let with_columns = !std::mem::replace(columns_sent, true);
            let metadata = json!({"resourceVersion": revision.to_string()});
            Ok(encoder.table(version).of_one(with_columns, &metadata, &object))
        }
        Some((Transform::PartialObjectMetadata, version)) => {
            encode(&partial(resource, &object, version), partial_schema(), &encoder.accepted)
        }
        None => encode(&object, encoder.resource.schema.get(), &encoder.accepted),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{BALLOONS, CONFIG_MAPS, INFLATED, INFLATED_BALLOONS, TestServer};
    use crate::base::body::Body;
    use futures_util::StreamExt as _;
    use pintle_cacher::ByteBudget;
    use pintle_machinery::json;

    #[tokio::test]
    async fn a_watch_begins_with_the_state_or_after_a_revision() {
        let server = TestServer::start().await;
        let first = server.create_config_map("a", "x").await;
        let second = server.create_config_map("b", "x").await;
        let check = async |query: &str, objects: &[&pintle_machinery::Value]| {
            let frame = server.first_frame(&format!("{CONFIG_MAPS}?watch=true&{query}")).await;
            let events: Vec<pintle_machinery::Value> =
                serde_json::Deserializer::from_slice(&frame).into_iter().map(Result::unwrap).collect();
            let expected: Vec<_> =
                objects.iter().map(|object| json!({"type": "ADDED", "object": object})).collect();
            assert_eq!(events, expected, "{query}");
        };
        check("", &[&first, &second]).await;
        let revision = first["metadata"]["resourceVersion"].as_str().unwrap();
        check(&format!("resourceVersion={revision}"), &[&second]).await;
        check("fieldSelector=metadata.name%3Da", &[&first]).await;
    }

    #[tokio::test]
    async fn a_watch_sends_the_changes_of_its_selection() {
        let server = TestServer::start().await;
        let first = server.create_config_map("a", "x").await;
        let revision = first["metadata"]["resourceVersion"].as_str().unwrap();
        let uri = format!("{CONFIG_MAPS}?watch=true&labelSelector=app%3Dx&resourceVersion={revision}");
        let mut frames = server.frames(&uri).await;
        let mut next = async |expected: (&str, &str)| {
            let frame = frames.next().await.unwrap();
            let event: pintle_machinery::Value = serde_json::from_slice(&frame).unwrap();
            let name = event["object"]["metadata"]["name"].as_str().unwrap();
            assert_eq!((event["type"].as_str().unwrap(), name), expected);
        };
        let merge = async |name: &str, patch: pintle_machinery::Value| {
            let uri = format!("{CONFIG_MAPS}/{name}");
            let (code, _) = server.send_as("PATCH", &uri, "application/merge-patch+json", patch).await;
            assert_eq!(code, 200);
        };
        merge("a", json!({"data": {"a": "2"}})).await;
        next(("MODIFIED", "a")).await;
        // An object that leaves the selection is deleted for the watcher, and added when it comes back.
        merge("a", json!({"metadata": {"labels": {"app": "y"}}})).await;
        next(("DELETED", "a")).await;
        server.create_config_map("b", "y").await;
        merge("a", json!({"metadata": {"labels": {"app": "x"}}})).await;
        next(("ADDED", "a")).await;
        assert_eq!(server.send("DELETE", &format!("{CONFIG_MAPS}/a"), json!(null)).await.0, 200);
        next(("DELETED", "a")).await;
    }

    /// A watch converts the objects of the changes that it reads from the event log for itself: their small originals
    /// say nothing of its memory.
    #[tokio::test]
    async fn slow_watches_in_another_version_do_not_keep_all_that_is_converted() {
        const BUDGET: usize = 32 << 20;
        const CHANGES: usize = 250;
        const WATCHES: usize = 12;
        let budget = ByteBudget::new(BUDGET, 0);
        let server = TestServer::start_with(|storage| storage.held_states(budget.clone())).await;
        let body = json!({"kind": "Balloon", "apiVersion": "example.com/v1", "metadata": {"name": "a"}});
        let (code, first) = server.send("POST", BALLOONS, body).await;
        assert_eq!(code, 201, "{first}");
        let revision = first["metadata"]["resourceVersion"].as_str().unwrap();
        for number in 0..CHANGES {
            let patch = json!({"spec": {"number": number}});
            let uri = format!("{BALLOONS}/a");
            let (code, object) = server.send_as("PATCH", &uri, "application/merge-patch+json", patch).await;
            assert_eq!(code, 200, "{object}");
        }
        let uri = format!("{INFLATED_BALLOONS}?watch=true&resourceVersion={revision}");
        let mut watches = Vec::new();
        for _ in 0..WATCHES {
            let mut frames = server.frames(&uri).await;
            let first = frames.next().await.unwrap();
            assert!(first.len() > INFLATED && !first.windows(5).any(|part| part == b"ERROR"));
            watches.push((first, frames));
            assert!(budget.used() <= BUDGET);
        }
        assert!(budget.used() > BUDGET / 2);
        let mut whole = 0;
        for (first, mut frames) in watches {
            let mut events = first.iter().filter(|byte| **byte == b'\n').count();
            while events < CHANGES
                && let Some(frame) = frames.next().await
            {
                events += frame.iter().filter(|byte| **byte == b'\n').count();
            }
            whole += usize::from(events == CHANGES);
        }
        assert!((1..=BUDGET / (CHANGES * INFLATED)).contains(&whole), "{whole}");
        assert_eq!(budget.used(), 0);
    }

    #[tokio::test]
    async fn watches_of_metadata_share_their_frames() {
        let server = TestServer::start().await;
        let uri = format!("{CONFIG_MAPS}?watch=true");
        let accept = [(http::header::ACCEPT, "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io")];
        let watch = async || match server.respond_with("GET", &uri, &accept, "").await.into_body() {
            Body::Stream(frames) => frames,
            _ => panic!("not a stream"),
        };
        let (mut first, mut second) = (watch().await, watch().await);
        // Both have read the state when the object is created.
        let (frame, other, created) =
            tokio::join!(first.next(), second.next(), server.create_config_map("a", "x"));
        let (frame, other) = (frame.unwrap(), other.unwrap());
        assert_eq!(frame.as_ptr(), other.as_ptr());
        let event: pintle_machinery::Value = serde_json::from_slice(&frame).unwrap();
        assert_eq!(event["object"]["metadata"], created["metadata"]);
        assert_eq!(event["object"]["kind"], "PartialObjectMetadata");
        assert_eq!(event["object"]["data"], json!(null));
    }

    #[tokio::test]
    async fn watches_of_tables_share_the_rows_of_a_second() {
        let server = TestServer::start().await;
        let first = server.create_config_map("a", "x").await;
        let watch = async |part: &str| {
            let uri = format!("{CONFIG_MAPS}?watch=true&includeObject={part}");
            let accept = [(http::header::ACCEPT, "application/json;as=Table;v=v1;g=meta.k8s.io")];
            match server.respond_with("GET", &uri, &accept, "").await.into_body() {
                Body::Stream(frames) => frames,
                _ => panic!("not a stream"),
            }
        };
        let (mut first_watch, mut second_watch) = (watch("Metadata").await, watch("Metadata").await);
        let mut whole = watch("Object").await;
        for frames in [&mut first_watch, &mut second_watch, &mut whole] {
            let columns = frames.next().await.unwrap();
            let event: pintle_machinery::Value = serde_json::from_slice(&columns).unwrap();
            assert_eq!(event["object"]["columnDefinitions"][0]["name"], json!("Name"));
            assert_eq!(event["object"]["rows"][0]["cells"][0], first["metadata"]["name"]);
        }
        // Events of the end of a second may be encoded in the next one.
        let mut shared = false;
        for name in ["b", "c", "d"] {
            let (frame, other, whole, created) = tokio::join!(
                first_watch.next(),
                second_watch.next(),
                whole.next(),
                server.create_config_map(name, "x")
            );
            let (frame, other, whole) = (frame.unwrap(), other.unwrap(), whole.unwrap());
            shared |= frame.as_ptr() == other.as_ptr();
            for (frame, kind, data) in [
                (&frame, "PartialObjectMetadata", &json!(null)),
                (&other, "PartialObjectMetadata", &json!(null)),
                (&whole, "ConfigMap", &created["data"]),
            ] {
                let event: pintle_machinery::Value = serde_json::from_slice(frame).unwrap();
                let row = &event["object"]["rows"][0];
                assert_eq!(event["object"]["columnDefinitions"], json!(null));
                assert_eq!(row["cells"][0], created["metadata"]["name"]);
                assert_eq!(row["object"]["metadata"], created["metadata"]);
                assert_eq!((&row["object"]["kind"], &row["object"]["data"]), (&json!(kind), data));
            }
        }
        assert!(shared);
    }

    #[tokio::test]
    async fn watches_end_at_once_after_a_negative_time_and_at_an_event_in_a_form_of_lists() {
        let server = TestServer::start().await;
        server.create_config_map("a", "x").await;
        for (query, accept) in [
            ("&timeoutSeconds=-1", "application/json"),
            ("", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"),
        ] {
            let uri = format!("{CONFIG_MAPS}?watch=true{query}");
            let accept = [(http::header::ACCEPT, accept)];
            let response = server.respond_with("GET", &uri, &accept, "").await;
            assert_eq!(response.status(), 200);
            match response.into_body() {
                Body::Stream(mut frames) => assert!(frames.next().await.is_none(), "{query}"),
                _ => panic!("not a stream"),
            }
        }
    }

    #[tokio::test]
    async fn a_revision_that_is_no_number_is_rejected() {
        let server = TestServer::start().await;
        let (code, status) =
            server.send("GET", &format!("{CONFIG_MAPS}?watch=true&resourceVersion=x"), json!(null)).await;
        let message =
            "resourceVersion: Invalid value: \"x\": strconv.ParseUint: parsing \"x\": invalid syntax";
        assert_eq!((code, &status["message"]), (500, &json!(message)));
    }
}
