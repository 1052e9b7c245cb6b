//! A decoder, objects and a store for tests. The stored value is `name=value` pairs, such as `node=a;l:app=web`.
//!
//! Functions panic where a test has to fail.

#![expect(clippy::unwrap_used, reason = "a failure here is the failure of a test")]

use crate::{
    ByteBudget, CachedObject, Cacher, CacherConfig, DecodeError, DecodedObject, Freshness, ObjectDecoder,
    Predicate, Selectable, Snapshot, Trigger, TriggerField, WatchItem, WatchOptions, WatchStart, Watcher,
};
use bytes::Bytes;
use pintle_storage::{
    BoxFuture, CompactionRound, GetResponse, Key, ListRequest, ListResponse, MemoryStorage, Payload,
    Revision, Storage, StorageError, StorageEvent, WatchReceiver, WatchRequest, WatchStream, WriteError,
};
use std::{
    sync::{Arc, atomic::AtomicU64},
    task::{Context, Poll, Waker},
    time::Duration,
};
use tokio::sync::watch;

/// Decodes `node=a;l:app=web` into the one selectable field and labels. Values that begin with `!` do not decode.
pub struct TestDecoder;

impl ObjectDecoder for TestDecoder {
    fn decode(
        &self,
        key: &Key,
        value: &Payload,
        mod_revision: Revision,
    ) -> Result<DecodedObject, DecodeError> {
        let text = std::str::from_utf8(value).map_err(|error| DecodeError(error.to_string()))?;
        if text.starts_with('!') {
            return Err(DecodeError("not an object".into()));
        }
        let mut node: Arc<str> = "".into();
        let mut labels = Vec::new();
        for (name, value) in text.split(';').filter_map(|pair| pair.split_once('=')) {
            match name.strip_prefix("l:") {
                Some(label) => labels.push((Arc::from(label), Arc::from(value))),
                None if name == "node" => node = value.into(),
                None => {}
            }
        }
        let mut segments = key.as_str().rsplit('/');
        let name = segments.next().unwrap_or_default();
        let namespace = segments.next().unwrap_or_default();
        Ok(DecodedObject {
            json: json(text, mod_revision),
            packed: None,
            namespace: namespace.into(),
            name: name.into(),
            selectable: Arc::new(Selectable {
                labels: labels.into_iter().collect(),
                fields: [node].into(),
                exact: None,
            }),
        })
    }

    fn rewrite_revision(&self, json_bytes: &Bytes, revision: Revision) -> Bytes {
        let text = std::str::from_utf8(json_bytes).unwrap();
        json(text.split_once('@').unwrap().0, revision)
    }
}

fn json(text: &str, revision: Revision) -> Bytes {
    Bytes::from(format!("{text}@{revision}"))
}

/// An object without a node and labels.
pub fn object(key: &str, revision: u64) -> Arc<CachedObject> {
    object_of(key, revision, "")
}

/// An object from its stored text.
pub fn object_of(key: &str, revision: u64, text: &str) -> Arc<CachedObject> {
    let key = Key::new(key);
    let revision = Revision(revision);
    let decoded = TestDecoder.decode(&key, &text.to_owned().into(), revision).unwrap();
    Arc::new(CachedObject::new(key, revision, decoded))
}

/// The key prefix of the test resource.
pub const PREFIX: &str = "/p/";

/// The configuration of the test resource.
pub fn config() -> CacherConfig {
    CacherConfig {
        // Most objects are packed soon, so that every test reads packed and open ones.
        open_budget: ByteBudget::new(64, 32),
        triggers: vec![TriggerField { name: "spec.nodeName".into(), index: 0 }],
        ..CacherConfig::new("tests", PREFIX, Arc::new(TestDecoder))
    }
}

/// A memory engine whose watches can be held and broken, and can omit the queued revision, as etcd's do, and whose writes
/// can remain unanswered.
pub struct TestStorage {
    inner: MemoryStorage,
    controls: watch::Sender<Controls>,
    /// The prefixes of the lists requested so far.
    listed: parking_lot::Mutex<Vec<String>>,
}

/// The ways in which a [`TestStorage`] fails.
#[derive(Clone, Copy, Default)]
pub struct Controls {
    /// Watches do not report the revision they have queued.
    pub silent: bool,
    /// Watches deliver nothing.
    pub held: bool,
    /// Lists fail.
    pub no_lists: bool,
    /// New watches fail.
    pub no_watches: bool,
    /// Writes of existing objects happen, and fail.
    pub unanswered: bool,
    /// Open watches panic.
    pub panics: bool,
    /// An increment ends the open watches.
    pub breaks: u32,
}

impl TestStorage {
    /// An empty store.
    pub fn new() -> Arc<TestStorage> {
        Arc::new(TestStorage {
            inner: MemoryStorage::new(),
            controls: watch::Sender::default(),
            listed: Default::default(),
        })
    }

    /// Changes the controls.
    pub fn control(&self, change: impl FnOnce(&mut Controls)) {
        self.controls.send_modify(change);
    }

    /// The prefixes of the lists requested since the last call.
    pub fn take_listed(&self) -> Vec<String> {
        std::mem::take(&mut self.listed.lock())
    }

    async fn answer(
        &self,
        write: BoxFuture<'_, Result<Revision, WriteError>>,
    ) -> Result<Revision, WriteError> {
        let written = write.await;
        match self.controls.borrow().unanswered {
            true => Err(StorageError::Engine("the connection was lost".into()).into()),
            false => written,
        }
    }

    /// Creates or replaces an object.
    pub async fn put(&self, key: &str, text: &str) -> Revision {
        let key = Key::new(key);
        let value = Bytes::from(text.to_owned());
        loop {
            let written = match self.get(&key).await.unwrap().kv {
                Some(kv) => self.update(&key, value.clone().into(), kv.mod_revision, None).await,
                None => self.create(&key, value.clone().into(), None).await,
            };
            match written {
                Ok(revision) => return revision,
                Err(WriteError::Storage(error)) => panic!("{error}"),
                Err(_) => {}
            }
        }
    }

    /// Deletes if it exists.
    pub async fn remove(&self, key: &str) -> Option<Revision> {
        let key = Key::new(key);
        loop {
            let kv = self.get(&key).await.unwrap().kv?;
            if let Ok(revision) = self.delete(&key, kv.mod_revision).await {
                return Some(revision);
            }
        }
    }
}

impl Storage for TestStorage {
    fn create(
        &self,
        key: &Key,
        value: Payload,
        ttl: Option<Duration>,
    ) -> BoxFuture<'_, Result<Revision, WriteError>> {
        self.inner.create(key, value, ttl)
    }

    fn update(
        &self,
        key: &Key,
        value: Payload,
        expected: Revision,
        ttl: Option<Duration>,
    ) -> BoxFuture<'_, Result<Revision, WriteError>> {
        Box::pin(self.answer(self.inner.update(key, value, expected, ttl)))
    }

    fn delete(&self, key: &Key, expected: Revision) -> BoxFuture<'_, Result<Revision, WriteError>> {
        Box::pin(self.answer(self.inner.delete(key, expected)))
    }

    fn delete_existing(
        &self,
        key: &Key,
        expected: Revision,
        existing: Payload,
    ) -> BoxFuture<'_, Result<Revision, WriteError>> {
        Box::pin(self.answer(self.inner.delete_existing(key, expected, existing)))
    }

    fn get(&self, key: &Key) -> BoxFuture<'_, Result<GetResponse, StorageError>> {
        self.inner.get(key)
    }

    fn get_list(&self, request: ListRequest) -> BoxFuture<'_, Result<ListResponse, StorageError>> {
        self.listed.lock().push(request.prefix.clone());
        if self.controls.borrow().no_lists {
            return Box::pin(async { Err(StorageError::Engine("no lists".into())) });
        }
        self.inner.get_list(request)
    }

    fn count(&self, request: ListRequest) -> BoxFuture<'_, Result<usize, StorageError>> {
        self.inner.count(request)
    }

    fn watch(&self, request: WatchRequest) -> BoxFuture<'_, Result<WatchStream, StorageError>> {
        Box::pin(async move {
            if self.controls.borrow().no_watches {
                return Err(StorageError::Engine("no watches".into()));
            }
            let inner = self.inner.watch(request).await?;
            let controls = self.controls.subscribe();
            let breaks = controls.borrow().breaks;
            Ok(Box::new(TestStream { inner, controls, breaks }) as WatchStream)
        })
    }

    fn current_revision(&self) -> BoxFuture<'_, Result<Revision, StorageError>> {
        self.inner.current_revision()
    }

    fn request_progress(&self) -> BoxFuture<'_, Result<(), StorageError>> {
        self.inner.request_progress()
    }

    fn compact(&self, revision: Revision) -> BoxFuture<'_, Result<(), StorageError>> {
        self.inner.compact(revision)
    }

    fn compact_periodically(
        &self,
        last: CompactionRound,
    ) -> BoxFuture<'_, Result<CompactionRound, StorageError>> {
        self.inner.compact_periodically(last)
    }

    fn health(&self) -> BoxFuture<'_, Result<(), StorageError>> {
        self.inner.health()
    }

    fn compacted_revision(&self) -> Revision {
        self.inner.compacted_revision()
    }

    fn size(&self) -> BoxFuture<'_, Result<u64, StorageError>> {
        self.inner.size()
    }

    fn close(&self) -> BoxFuture<'_, Result<(), StorageError>> {
        self.inner.close()
    }
}

struct TestStream {
    inner: WatchStream,
    controls: watch::Receiver<Controls>,
    breaks: u32,
}

impl WatchReceiver for TestStream {
    fn next_batch(&mut self) -> BoxFuture<'_, Option<Vec<StorageEvent>>> {
        Box::pin(async move {
            let TestStream { inner, controls, breaks } = self;
            let breaks = *breaks;
            loop {
                let Controls { held, panics, breaks: now, .. } = *controls.borrow_and_update();
                assert!(!panics, "as asked");
                if now != breaks {
                    return None;
                }
                tokio::select! {
                    // Biased, so that an event held before a write is not delivered.
                    biased;
                    _ = controls.changed() => {}
                    batch = inner.next_batch(), if !held => return batch,
                }
            }
        })
    }

    fn queued_revision(&self) -> Option<Arc<AtomicU64>> {
        if self.controls.borrow().silent { None } else { self.inner.queued_revision() }
    }
}

/// A ready cacher over `storage`.
pub async fn start(storage: &Arc<TestStorage>, config: CacherConfig) -> Arc<Cacher> {
    let cacher = Cacher::start(storage.clone(), config, &pintle_supervisor::Supervisor::current());
    cacher.wait_ready().await.unwrap();
    cacher
}

/// The watcher's ready items, as text: `ADDED /p/a/x node=n@5`, `BOOKMARK 7`, `BOOKMARK 7 end`, `END`.
pub fn ready(watcher: &mut Watcher) -> Vec<String> {
    let mut items = Vec::new();
    let mut cx = Context::from_waker(Waker::noop());
    let mut ended = false;
    while let Poll::Ready(count) = watcher.poll_batch(&mut cx, 3, &mut items) {
        ended = count == 0;
        if ended {
            break;
        }
    }
    let mut lines: Vec<_> = items.iter().map(render).collect();
    if ended {
        lines.push("END".into());
    }
    lines
}

/// As [`ready`], once the cacher has applied every write.
pub async fn settled(cacher: &Cacher, watcher: &mut Watcher) -> Vec<String> {
    cacher.shared.snapshot_from_cache(Freshness::Consistent).await.unwrap();
    ready(watcher)
}

/// An item as [`ready`] shows it.
pub fn render(item: &WatchItem) -> String {
    match item {
        WatchItem::Event { event_type, event } => {
            let object = event.object(*event_type).unwrap();
            assert!(object.revision() <= event.revision());
            let json = String::from_utf8(object.json().into()).unwrap();
            format!("{} {} {json}", event_type.as_str(), object.key())
        }
        WatchItem::Bookmark { revision, initial_events_end: false } => format!("BOOKMARK {revision}"),
        WatchItem::Bookmark { revision, initial_events_end: true } => format!("BOOKMARK {revision} end"),
    }
}

/// The objects of a snapshot: `/p/a/x node=n@5`.
pub fn contents(snapshot: &Snapshot) -> Vec<String> {
    let render = |object: &Arc<CachedObject>| {
        format!("{} {}", object.key(), std::str::from_utf8(&object.json()).unwrap())
    };
    snapshot.range(PREFIX, None).map(render).collect()
}

/// A predicate on one label.
pub fn labelled(key: &'static str, value: &'static str) -> Option<Predicate> {
    Some(Arc::new(move |object| object.labels().get(key) == Some(value)))
}

/// A trigger on the node field, with the matching predicate.
pub fn on_node(node: &str) -> WatchOptions {
    let value: Arc<str> = node.into();
    let expected = value.clone();
    WatchOptions {
        trigger: Some(Trigger { field: "spec.nodeName".into(), value }),
        predicate: Some(Arc::new(move |object| object.field(0) == Some(&*expected))),
        ..WatchOptions::new(WatchStart::Now(Freshness::Any))
    }
}
