//! What watchers get.

use crate::{CachedObject, ObjectDecoder, RepresentationId, lazy_map::LazyMap};
use bytes::Bytes;
use pintle_storage::Revision;
use std::{
    fmt,
    sync::{Arc, OnceLock},
};

/// One item of a [`crate::Watcher`].
#[derive(Debug, Clone)]
pub enum WatchItem {
    /// A change of an object, as this watcher sees it.
    Event {
        /// What the change is to this watcher: an object that starts to match its predicate is ADDED to it.
        event_type: EventType,
        /// The change, shared by all watchers.
        event: Arc<WatchEvent>,
    },
    /// Everything up to `revision` has been delivered.
    Bookmark {
        /// The revision.
        revision: Revision,
        /// Whether the bookmark ends the initial events, and gets the `k8s.io/initial-events-end` annotation.
        initial_events_end: bool,
    },
}

impl WatchItem {
    /// The bytes of the objects that the item keeps.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            WatchItem::Event { event, .. } => event.change.bytes(),
            WatchItem::Bookmark { .. } => 0,
        }
    }
}

/// What happened to an object, in the eyes of one watcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventType {
    /// It is there, and was not before.
    Added,
    /// It was there and still is.
    Modified,
    /// It was there and is not any more.
    Deleted,
}

impl EventType {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            EventType::Added => "ADDED",
            EventType::Modified => "MODIFIED",
            EventType::Deleted => "DELETED",
        }
    }
}

/// A change of one object. At least one of `current` and `previous` is there.
pub struct WatchEvent {
    change: Change,
    decoder: Arc<dyn ObjectDecoder>,
    deleted: OnceLock<Arc<CachedObject>>,
    frames: LazyMap<(EventType, RepresentationId), Bytes>,
}

impl WatchEvent {
    pub(crate) fn new(change: Change, decoder: Arc<dyn ObjectDecoder>) -> WatchEvent {
        WatchEvent { change, decoder, deleted: OnceLock::new(), frames: LazyMap::default() }
    }

    pub(crate) fn change(&self) -> &Change {
        &self.change
    }

    /// The revision of the change. For an object of the initial state the object's own.
    pub fn revision(&self) -> Revision {
        self.change.revision
    }

    /// The object after the change; `None` when it was deleted.
    pub fn current(&self) -> Option<&Arc<CachedObject>> {
        self.change.current.as_ref()
    }

    /// The object before the change; `None` when it was created.
    pub fn previous(&self) -> Option<&Arc<CachedObject>> {
        self.change.previous.as_ref()
    }

    /// The object to send: the current one, or for [`EventType::Deleted`] the previous one with the revision of the
    /// change as its resource version (made once). `None` only for a type that no watcher gets of this event.
    pub fn object(&self, event_type: EventType) -> Option<&Arc<CachedObject>> {
        match event_type {
            EventType::Added | EventType::Modified => self.change.current.as_ref(),
            EventType::Deleted => {
                let previous = self.change.previous.as_ref()?;
                Some(self.deleted.get_or_init(|| {
                    Arc::new(previous.at_revision(self.change.revision, self.decoder.as_ref()))
                }))
            }
        }
    }

    /// The event as it goes to the wire, made by `make` for the first watcher that wants it so and shared by all.
    ///
    /// `id` names everything the frame depends on but the event and its type: media type, version, Table or not.
    /// Frames live as long as the event waits for watchers, not as long as the history.
    ///
    /// # Errors
    /// What `make` returns; the next watcher tries again.
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

/// The bare change, as the event log keeps it.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    pub(crate) revision: Revision,
    pub(crate) current: Option<Arc<CachedObject>>,
    pub(crate) previous: Option<Arc<CachedObject>>,
}

impl Change {
    /// The bytes of the objects before and after it.
    pub(crate) fn bytes(&self) -> usize {
        let size =
            |object: &Option<Arc<CachedObject>>| object.as_ref().map_or(0, |object| object.json().len());
        size(&self.current) + size(&self.previous)
    }

    /// What the change is to somebody who sees only the objects that `matches` accepts; `None` is nothing.
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
