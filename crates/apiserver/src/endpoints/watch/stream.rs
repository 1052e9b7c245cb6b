//! The event stream of one client: the items of its watcher, as many in a frame as fit.

use super::event::encoded;
use crate::{
    base::{
        encoding::encode_status,
        negotiation::{Accepted, MediaType},
        stop::stopped,
    },
    endpoints::{
        encoder::{Encoder, IncludeObject},
        frame_size::{FRAME_BYTES, READ_BYTES},
        request_scope::RequestScope,
        selection::Selection,
    },
    filters::WatchTicket,
    metrics::{InitialEvents, WatchSeries},
    registry::VersionedResource,
};
use bytes::{Bytes, BytesMut};
use jiff::Timestamp;
use pintle_cacher::{CachedObject, CacherMetrics, EventType, Held, WatchEvent, WatchItem, Watcher};
use pintle_machinery::{GroupVersionResource, Status};
use pintle_offload::{LIGHT, beside};
use pintle_websocket::{Opcode, is_websocket_request, put_frame, put_header};
use std::{
    collections::VecDeque,
    pin::Pin,
    sync::{Arc, atomic::Ordering},
};
use tokio::time::Instant;

/// The number of items in one frame.
const BATCH: usize = 256;
/// The length in front of an event in protobuf, in bytes.
const LENGTH_BYTES: usize = 4;

/// The bytes of forms made for one watch that it may keep between two frames without being [held](Held): twice those of
/// a batch whose converted objects are as large as the stored ones.
const OWN_BYTES: usize = 1 << 20;

/// The form of events in the frames of a WebSocket connection.
#[derive(Debug, Clone, Copy)]
struct WebSocketForm {
    opcode: Opcode,
    /// The bytes in front of an event that only an unframed stream needs.
    skip: usize,
}

impl WebSocketForm {
    fn of(media_type: MediaType) -> WebSocketForm {
        match media_type {
            MediaType::Protobuf => WebSocketForm { opcode: Opcode::Binary, skip: LENGTH_BYTES },
            MediaType::Cbor => WebSocketForm { opcode: Opcode::Binary, skip: 0 },
            MediaType::Json | MediaType::Yaml => WebSocketForm { opcode: Opcode::Text, skip: 0 },
        }
    }
}

/// The event stream of one client.
pub(super) struct WatchStream {
    resource: Arc<VersionedResource>,
    accepted: Accepted,
    include_object: IncludeObject,
    /// Whether objects are sent as cached.
    is_cached_json: bool,
    /// Whether the client wants objects in a form that only lists have: the first event ends the watch.
    pub(super) has_list_form: bool,
    /// The selection, if it waits for conversions.
    pub(super) selection: Option<Arc<Selection>>,
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
    pub(super) watcher: Option<Watcher>,
    /// Counts the watch if it is one of shards.
    shards: Option<ShardWatch>,
    pub(super) failed: Option<Status>,
    /// The watch's registration and seat in flow control.
    ticket: Option<Arc<WatchTicket>>,
    has_begun: bool,
    metrics: Arc<WatchSeries>,
    /// Records when the initial events are sent, if the client wants to know their end.
    initial: Option<InitialEvents>,
}

impl WatchStream {
    /// The stream of a watch that is over at the deadline. It has no watcher yet.
    pub(super) fn new(
        scope: &RequestScope<'_>,
        accepted: Accepted,
        include_object: IncludeObject,
        deadline: Instant,
    ) -> WatchStream {
        let web_socket = is_websocket_request(scope.headers).then(|| WebSocketForm::of(accepted.media_type));
        WatchStream {
            resource: scope.resource_arc(),
            accepted,
            include_object,
            is_cached_json: false,
            has_list_form: false,
            selection: None,
            batch: Vec::new(),
            items: VecDeque::new(),
            held: None,
            columns_sent: false,
            web_socket,
            payload: None,
            over: Box::pin(over(deadline, scope.server.shutdown.clone())),
            watcher: None,
            shards: None,
            failed: None,
            ticket: scope.watch_ticket.clone(),
            has_begun: false,
            metrics: metrics_of(scope),
            initial: None,
        }
    }

    /// Measures the time until the client has the initial events.
    pub(super) fn measure_initial_events(&mut self, scope: &RequestScope<'_>) {
        self.initial = Some(initial_events(scope));
    }

    /// Counts the watch as one of shards while it is open.
    pub(super) fn count_shards(&mut self, metrics: &Arc<CacherMetrics>) {
        self.shards = Some(ShardWatch::begin(metrics));
    }

    /// Whether each event has a frame of a WebSocket connection.
    pub(super) fn is_web_socket(&self) -> bool {
        self.web_socket.is_some()
    }

    /// Notes how the watch begins, when it has its watcher or has failed.
    pub(super) fn begin(&mut self) {
        self.is_cached_json = self.encoder().is_cached_json();
        self.note_progress();
    }

    /// The next frame: as many ready events as one frame takes. `None` ends the stream.
    pub(super) async fn next(mut self) -> Option<(Bytes, WatchStream)> {
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
        encoder(&self.resource, &self.accepted, self.include_object)
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
        let frame = encoded(
            &encoder(&self.resource, &self.accepted, self.include_object),
            item,
            &mut self.columns_sent,
        )?;
        self.metrics.sent(frame.len());
        if let WatchItem::Bookmark { initial_events_end: true, .. } = item
            && let Some(initial) = self.initial.take()
        {
            initial.sent();
        }
        Ok(frame)
    }

    fn error_frame(&self, status: &Status) -> Bytes {
        let mut encoder = self.encoder();
        encoder.accepted.transform = None;
        let frame = encoder.event("ERROR", encode_status(status, &encoder.accepted));
        self.metrics.sent(frame.len());
        match self.web_socket {
            None => frame,
            Some(form) => in_frame(form, frame).freeze(),
        }
    }
}

fn encoder<'a>(
    resource: &'a VersionedResource,
    accepted: &Accepted,
    include_object: IncludeObject,
) -> Encoder<'a> {
    Encoder { resource, accepted: accepted.clone(), include_object, now: Timestamp::now() }
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

/// Waits for the watch's timeout or the server's shutdown.
async fn over(deadline: Instant, mut shutdown: tokio::sync::watch::Receiver<bool>) {
    tokio::select! {
        () = tokio::time::sleep_until(deadline) => {}
        () = stopped(&mut shutdown) => {}
    }
}
