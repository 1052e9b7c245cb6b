//! The task that follows the store: lists once, then watches.
//!
//! ```text
//!   list ──► watch ──► batch ──► batch ─ … ─┐
//!    ▲         ▲                            │ the watch ends or fails
//!    │         └──── from the last event ◄──┤
//!    └──── when that is compacted ◄─────────┘
//! ```
//!
//! When a watch ends, the next one starts after the last event, so watchers see no gap. All objects are listed again,
//! and the watchers end, only in two cases: the store has compacted the changes since the last event; or an object
//! became readable without a write ([`SecondLook`]), which no event can report.

use crate::{
    CachedObject, Snapshot, event::Change, label_index::LabelIndex, metrics, object_map::ObjectMap,
    open_objects::OpenObjects, second_look::SecondLook, shared::Shared, snapshot::UnreadableMap,
};
use pintle_storage::{
    EventKind, KeyValue, Revision, StorageError, StorageEvent, WatchReceiver, WatchRequest,
};
use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

/// The number of events that are decoded and published at once; the task yields in between.
const CHUNK: usize = 256;

/// The number of objects that are packed at once, which takes a millisecond or two. More wait for the next write.
const AT_ONCE: usize = 128;

/// The number of objects that are indexed at once, which takes a tenth of a millisecond; the task yields in between.
const INDEXED_AT_ONCE: usize = 1000;

/// The most memory that the indexes of labels take, in bytes for each object of the resource: room for one whose values
/// all differ.
const LABEL_INDEX_BYTES: usize = 256;

/// Runs until the store is closed. A cache that no task follows must not be read as if it were up to date: when `run`
/// returns, the cacher stops; when it panics, the cacher is emptied until the task runs again.
pub(crate) async fn run(shared: Arc<Shared>) {
    let _empty = EmptyAtEnd(&shared);
    let mut backoff = Backoff::default();
    loop {
        let mut open = OpenObjects::new(shared.config.open_budget.clone());
        let keep = |objects: &[Arc<CachedObject>]| {
            objects.iter().for_each(|object| open.insert(object));
            open.pack_excess(objects.len(), |_| true)
        };
        match shared.first_list(keep).await {
            Ok(snapshot) => {
                tracing::debug!(
                    resource = %shared.config.resource, revision = %snapshot.revision(), objects = snapshot.len(),
                    "cacher initialized"
                );
                let mut reflector = Reflector::new(&shared, snapshot, open);
                if let Ended::Storage(StorageError::Closed) = reflector.watch(&mut backoff).await {
                    break;
                }
            }
            Err(StorageError::Closed) => break,
            Err(error) => {
                tracing::error!(resource = %shared.config.resource, %error, "cannot list; trying again");
                backoff.wait().await;
            }
        }
    }
}

struct EmptyAtEnd<'a>(&'a Shared);

impl Drop for EmptyAtEnd<'_> {
    fn drop(&mut self) {
        match std::thread::panicking() {
            true => self.0.begin_anew(),
            false => self.0.stop(),
        }
    }
}

struct Reflector<'a> {
    shared: &'a Shared,
    open: OpenObjects,
    objects: ObjectMap,
    unreadable: UnreadableMap,
    revision: Revision,
    second_look: SecondLook,
}

/// The reason why the storage watch ended.
enum Ended {
    /// The watch failed.
    Storage(StorageError),
    /// An object that was unreadable can be read.
    Readable,
}

impl From<StorageError> for Ended {
    fn from(error: StorageError) -> Ended {
        Ended::Storage(error)
    }
}

impl<'a> Reflector<'a> {
    fn new(shared: &'a Shared, snapshot: Snapshot, open: OpenObjects) -> Reflector<'a> {
        let snapshot = snapshot.into_state(shared.config.triggers.iter().map(|trigger| trigger.index));
        let size: usize = snapshot.range("", None).map(|object| object.size()).sum();
        shared.metrics.size_estimate.store(size as u64, Ordering::Relaxed);
        let reflector = Reflector {
            shared,
            open,
            objects: snapshot.objects().clone(),
            unreadable: snapshot.unreadable_objects().clone(),
            revision: snapshot.revision(),
            second_look: SecondLook::default(),
        };
        shared.label_demand.reset();
        shared.replace(snapshot);
        reflector
    }

    /// Watches the store, and watches again after transient failures. Returns on [`StorageError::Closed`],
    /// [`StorageError::Compacted`] or [`Ended::Readable`].
    async fn watch(&mut self, backoff: &mut Backoff) -> Ended {
        loop {
            let ended = self.watch_once(backoff).await;
            self.shared.set_queued(None);
            let error = match ended {
                Ok(()) => None,
                Err(Ended::Storage(error @ (StorageError::Closed | StorageError::Compacted { .. }))) => {
                    tracing::debug!(resource = %self.shared.config.resource, %error, "cannot go on watching");
                    return Ended::Storage(error);
                }
                Err(Ended::Readable) => {
                    tracing::info!(resource = %self.shared.config.resource, "objects can be read again");
                    return Ended::Readable;
                }
                Err(Ended::Storage(error)) => Some(error),
            };
            tracing::warn!(
                resource = %self.shared.config.resource, revision = %self.revision,
                error = error.as_ref().map(tracing::field::display),
                "the storage watch ended; watching again"
            );
            backoff.wait().await;
        }
    }

    async fn watch_once(&mut self, backoff: &mut Backoff) -> Result<(), Ended> {
        let storage = &self.shared.storage;
        let prefix = self.shared.config.prefix.to_string();
        let mut stream = storage.watch(WatchRequest { prefix, after: self.revision }).await?;
        let queued = stream.queued_revision();
        let is_known =
            queued.as_ref().is_some_and(|queued| queued.load(Ordering::Acquire) <= self.revision.0);
        self.shared.set_queued(queued);
        if !is_known {
            // Otherwise the cache's progress would be unknown until the next write to the resource.
            storage.request_progress().await?;
        }
        self.follow(stream.as_mut(), backoff).await
    }

    async fn follow(&mut self, stream: &mut dyn WatchReceiver, backoff: &mut Backoff) -> Result<(), Ended> {
        loop {
            let batch = tokio::select! {
                batch = stream.next_batch() => batch,
                name = self.shared.label_demand.wanted() => {
                    self.index_label(name).await;
                    continue;
                }
                () = self.second_look.is_readable(&self.shared.storage, &self.unreadable) => {
                    return Err(Ended::Readable);
                }
            };
            let Some(batch) = batch else { return Ok(()) };
            backoff.reset();
            let mut batch = batch.into_iter().peekable();
            while batch.peek().is_some() {
                self.apply(batch.by_ref().take(CHUNK))?;
                if batch.peek().is_some() {
                    tokio::task::yield_now().await;
                }
            }
        }
    }

    /// Makes the index of a label, unless its values select too many objects. No event is applied meanwhile.
    async fn index_label(&mut self, name: Arc<str>) {
        let mut index = LabelIndex::new(name.clone());
        for (number, object) in self.objects.by_key().iter().enumerate() {
            if number % INDEXED_AT_ONCE == INDEXED_AT_ONCE - 1 {
                tokio::task::yield_now().await;
            }
            index.add(object);
        }
        let is_kept = index.selects_few(self.objects.len());
        self.shared.label_demand.settle(&name, is_kept);
        if is_kept {
            self.objects.add_label_index(index);
            self.bound_label_indexes();
            self.shared.publish_indexes(self.snapshot());
        }
    }

    /// Drops the indexes of labels that are too many or too large.
    fn bound_label_indexes(&mut self) {
        while let Some(name) = self.shared.label_demand.give_way(self.has_large_label_indexes()) {
            self.objects.drop_label_index(&name);
        }
    }

    fn has_large_label_indexes(&self) -> bool {
        self.objects.label_index_bytes() > self.objects.len().saturating_mul(LABEL_INDEX_BYTES)
    }

    /// The present state.
    fn snapshot(&self) -> Snapshot {
        Snapshot::new(self.objects.clone(), self.unreadable.clone(), self.revision)
    }

    /// Publishes some events, including those before an error.
    fn apply(&mut self, events: impl Iterator<Item = StorageEvent>) -> Result<(), StorageError> {
        let mut changes = Vec::new();
        let mut hidden = false;
        let mut failed = Ok(());
        for event in events {
            match event {
                StorageEvent::Write { kind, revision, kv } => {
                    metrics::add(&self.shared.metrics.events_received, 1);
                    self.revision = self.revision.max(revision);
                    let sides = self.write(kind, kv, &mut hidden);
                    changes.extend(sides.and_then(|(current, previous)| change(revision, current, previous)));
                }
                StorageEvent::Progress(revision) => {
                    metrics::add(&self.shared.metrics.bookmarks, 1);
                    self.revision = self.revision.max(revision);
                }
                StorageEvent::Error(error) => {
                    failed = Err(error);
                    break;
                }
            }
        }
        if changes.is_empty() && !hidden {
            self.shared.advance(self.revision);
        } else {
            // A label may have got more values than it had.
            if self.has_large_label_indexes() {
                self.bound_label_indexes();
            }
            self.shared.apply(changes, self.snapshot());
            let Reflector { open, objects, .. } = self;
            open.pack_excess(AT_ONCE, |object| {
                objects.get(object.key().as_str()).is_some_and(|current| Arc::ptr_eq(current, object))
            });
        }
        failed
    }

    /// Applies a write. Returns the object after and before it; `None` when the value cannot be read. Watchers get no
    /// event for an unreadable value: the object is not deleted, and they keep its last readable state. Sets `hidden`
    /// when the set of unreadable objects changes, which only the next snapshot shows.
    fn write(&mut self, kind: EventKind, kv: KeyValue, hidden: &mut bool) -> Option<Sides> {
        let current = match kind {
            EventKind::Create | EventKind::Update => Some(self.shared.decode(&kv)),
            EventKind::Delete => None,
        };
        // Usually there are none, and the lookup is skipped.
        let unreadable = match self.unreadable.is_empty() {
            true => None,
            false => self.unreadable.remove(kv.key.as_str()),
        };
        *hidden |= unreadable.is_some();
        let last = unreadable.and_then(|unreadable| unreadable.last.clone());
        match current {
            Some(Ok(object)) => {
                let previous = self.objects.insert(object.clone());
                self.note(Some(&object), previous.as_ref());
                let previous = previous.or(last);
                Some((Some(object), previous))
            }
            Some(Err(mut unreadable)) => {
                *hidden = true;
                let previous = self.objects.remove(kv.key.as_str());
                self.note(None, previous.as_ref());
                unreadable.last = previous.or(last);
                self.unreadable.insert(kv.key, Arc::new(unreadable));
                None
            }
            None => {
                let previous = self.objects.remove(kv.key.as_str());
                self.note(None, previous.as_ref());
                Some((None, previous.or(last)))
            }
        }
    }

    /// Notes that an object was written, in place of another.
    fn note(&mut self, current: Option<&Arc<CachedObject>>, previous: Option<&Arc<CachedObject>>) {
        let size = |object: Option<&Arc<CachedObject>>| object.map_or(0, |object| object.size() as u64);
        let estimate = &self.shared.metrics.size_estimate;
        estimate.fetch_add(size(current), Ordering::Relaxed);
        estimate.fetch_sub(size(previous), Ordering::Relaxed);
        previous.into_iter().for_each(|previous| self.open.remove(previous));
        current.into_iter().for_each(|current| self.open.insert(current));
    }
}

/// An object after and before a write.
type Sides = (Option<Arc<CachedObject>>, Option<Arc<CachedObject>>);

/// A change; `None` when neither side exists: an object that was never readable was deleted.
pub(crate) fn change(
    revision: Revision,
    current: Option<Arc<CachedObject>>,
    previous: Option<Arc<CachedObject>>,
) -> Option<Change> {
    (current.is_some() || previous.is_some()).then_some(Change { revision, current, previous })
}

/// Exponential back-off between failures.
struct Backoff {
    next: Duration,
}

impl Backoff {
    const FIRST: Duration = Duration::from_millis(20);
    const LONGEST: Duration = Duration::from_secs(5);

    async fn wait(&mut self) {
        tokio::time::sleep(self.next).await;
        self.next = (self.next * 2).min(Self::LONGEST);
    }

    fn reset(&mut self) {
        self.next = Self::FIRST;
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Backoff { next: Self::FIRST }
    }
}
