//! Watch events, with the frames that watchers share.

use crate::{CachedObject, ObjectDecoder, RepresentationId, lazy_map::LazyMap};
use bytes::Bytes;
use pintle_storage::{Key, Revision};
use std::{
    fmt,
    sync::{Arc, OnceLock},
};

/// One item of a [`crate::Watcher`].
#[derive(Debug, Clone)]
pub enum WatchItem {
    /// A change of an object, as this watcher sees it.
    Event {
        /// The type of the change for this watcher: an object that starts to match its predicate is ADDED.
        event_type: EventType,
        /// The change, shared by all watchers.
        event: Arc<WatchEvent>,
    },
    /// Everything up to `revision` has been delivered.
    Bookmark {
        /// The revision.
        revision: Revision,
        /// Whether the bookmark ends the initial events and carries the `k8s.io/initial-events-end` annotation.
        initial_events_end: bool,
    },
}

impl WatchItem {
    /// The bytes of what the item's event alone keeps in memory, as far as they are known: the objects of an
    /// [opened](WatchEvent::open) event, and its frames.
    pub fn own_bytes(&self) -> usize {
        match self {
            WatchItem::Event { event, .. } => event.own_bytes(),
            WatchItem::Bookmark { .. } => 0,
        }
    }

    /// The size in bytes of the objects that the item keeps in memory.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            WatchItem::Event { event, .. } => event.change.bytes(),
            WatchItem::Bookmark { .. } => 0,
        }
    }
}

/// The type of a change, as one watcher sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventType {
    /// The object exists now and did not before.
    Added,
    /// The object existed before and still exists.
    Modified,
    /// The object existed before and does not exist now.
    Deleted,
}

impl EventType {
    /// The `type` of the watch event in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            EventType::Added => "ADDED",
            EventType::Modified => "MODIFIED",
            EventType::Deleted => "DELETED",
        }
    }
}

/// A change of one object. At least one of `current` and `previous` is `Some`.
pub struct WatchEvent {
    change: Change,
    /// The objects of the change, opened.
    opened: OnceLock<Change>,
    decoder: Arc<dyn ObjectDecoder>,
    deleted: OnceLock<Arc<CachedObject>>,
    frames: LazyMap<(EventType, RepresentationId), Bytes>,
}

impl WatchEvent {
    pub(crate) fn new(change: Change, decoder: Arc<dyn ObjectDecoder>) -> WatchEvent {
        let (opened, deleted) = (OnceLock::new(), OnceLock::new());
        WatchEvent { change, opened, decoder, deleted, frames: LazyMap::default() }
    }

    pub(crate) fn change(&self) -> &Change {
        &self.change
    }

    /// The revision of the change. For an object of the initial state it is the object's own revision.
    pub fn revision(&self) -> Revision {
        self.change.revision
    }

    /// Keeps the encodings of the event's objects as long as the event, whether the cache packs them or not. All that
    /// have the event share them.
    pub fn open(&self) {
        let opened = |object: &Option<Arc<CachedObject>>| object.as_ref().map(|it| Arc::new(it.opened()));
        self.opened.get_or_init(|| Change {
            revision: self.change.revision,
            current: opened(&self.change.current),
            previous: opened(&self.change.previous),
        });
    }

    fn own_bytes(&self) -> usize {
        let opened = self.opened.get();
        let objects = opened.into_iter().flat_map(|change| [&change.current, &change.previous]).flatten();
        let objects = objects.chain(self.deleted.get()).map(|object| object.memory());
        objects.chain(self.frames.values().map(Bytes::len)).sum()
    }

    fn shown(&self) -> &Change {
        self.opened.get().unwrap_or(&self.change)
    }

    /// The object after the change; `None` when it was deleted.
    pub fn current(&self) -> Option<&Arc<CachedObject>> {
        self.shown().current.as_ref()
    }

    /// The object before the change; `None` when it was created.
    pub fn previous(&self) -> Option<&Arc<CachedObject>> {
        self.shown().previous.as_ref()
    }

    /// The object to send: the current one, or for [`EventType::Deleted`] the previous one with the revision of the
    /// change as its resource version (computed once). `None` only for a type that this event never has.
    pub fn object(&self, event_type: EventType) -> Option<&Arc<CachedObject>> {
        match event_type {
            EventType::Added | EventType::Modified => self.current(),
            EventType::Deleted => {
                let previous = self.previous()?;
                Some(self.deleted.get_or_init(|| {
                    Arc::new(previous.at_revision(self.change.revision, self.decoder.as_ref()))
                }))
            }
        }
    }

    /// The encoded event. `make` encodes it for the first watcher that requests this encoding; later watchers share
    /// the bytes.
    ///
    /// `id` identifies everything that the frame depends on besides the event and its type: media type, version,
    /// Table or not. Frames are kept as long as the event waits in queues, not as long as the event log keeps the
    /// change.
    ///
    /// # Errors
    /// The error of `make`; the next watcher calls `make` again.
    pub fn frame<E>(
        &self,
        event_type: EventType,
        id: RepresentationId,
        make: impl FnOnce() -> Result<Bytes, E>,
    ) -> Result<Bytes, E> {
        self.frames.get_or_try_init((event_type, id), make).cloned()
    }
}

impl fmt::Debug for WatchEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatchEvent").field("change", &self.change).finish_non_exhaustive()
    }
}

/// A change without frames, as the event log keeps it.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    pub(crate) revision: Revision,
    pub(crate) current: Option<Arc<CachedObject>>,
    pub(crate) previous: Option<Arc<CachedObject>>,
}

impl Change {
    /// The key of the changed object.
    pub(crate) fn key(&self) -> Option<&Key> {
        Some(self.current.as_ref().or(self.previous.as_ref())?.key())
    }

    /// The size in bytes of the objects before and after the change.
    pub(crate) fn bytes(&self) -> usize {
        let size = |object: &Option<Arc<CachedObject>>| object.as_ref().map_or(0, |object| object.size());
        size(&self.current) + size(&self.previous)
    }

    /// The bytes of the object that the change replaced, if the state at `revision`, before it, has that object.
    pub(crate) fn bytes_of(&self, revision: Revision) -> usize {
        let previous = self.previous.as_ref();
        previous.filter(|previous| previous.revision() <= revision).map_or(0, |previous| previous.memory())
    }

    /// The type of the change for a watcher that sees only the objects that `matches` accepts; `None` if it sees
    /// neither state.
    ///
    /// <https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes>
    pub(crate) fn event_type(&self, mut matches: impl FnMut(&CachedObject) -> bool) -> Option<EventType> {
        let current = self.current.as_deref().is_some_and(&mut matches);
        let previous = self.previous.as_deref().is_some_and(&mut matches);
        match (previous, current) {
            (false, true) => Some(EventType::Added),
            (true, true) => Some(EventType::Modified),
            (true, false) => Some(EventType::Deleted),
            (false, false) => None,
        }
    }
}
