//! Watches of storage keys: requests, events and streams.

use crate::{BoxFuture, Key, KeyValue, Revision, StorageError};
use std::sync::{Arc, atomic::AtomicU64};

/// The request of [`crate::Storage::watch`].
#[derive(Debug, Clone)]
pub struct WatchRequest {
    /// Only keys with this prefix.
    pub prefix: String,
    /// Only writes after this revision.
    pub after: Revision,
}

/// The kind of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// The key did not exist before.
    Create,
    /// The key's value was replaced.
    Update,
    /// The key was deleted; `kv` is the last value.
    Delete,
}

/// One item of a [`WatchStream`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StorageEvent {
    /// A write.
    Write {
        /// The kind of the write.
        kind: EventKind,
        /// The write's own revision.
        revision: Revision,
        /// The pair as written; for [`EventKind::Delete`] the pair that was deleted.
        kv: KeyValue,
    },
    /// Everything up to this revision has been delivered.
    Progress(Revision),
    /// The watch has ended; no event follows. The watcher restarts from the last revision it has seen.
    Error(StorageError),
}

/// The receiving end of a watch. Dropping it ends the watch.
pub trait WatchReceiver: Send {
    /// The next events in revision order: at least one, and all that are ready up to some bound; `None` when the
    /// watch was closed. Cancel safe: a dropped call loses nothing.
    fn next_batch(&mut self) -> BoxFuture<'_, Option<Vec<StorageEvent>>>;

    /// The progress of this watch's queue, for engines that queue a write before they acknowledge it: every write to
    /// the prefix up to [`Storage::current_revision`](crate::Storage::current_revision) has been delivered, or is
    /// queued with a revision up to this one. A follower that has seen this revision has therefore seen every
    /// acknowledged write, without waiting for progress.
    ///
    /// The value only grows, except that it is [`u64::MAX`], which means "unknown", from the moment the engine stops
    /// queueing, even if the follower has not seen the end yet, and while an engine over a network does not know
    /// which events are still to come. Engines that never know it return `None`.
    fn queued_revision(&self) -> Option<Arc<AtomicU64>> {
        None
    }
}

/// A boxed [`WatchReceiver`].
pub type WatchStream = Box<dyn WatchReceiver>;

/// The key of an event, if it is a write.
impl StorageEvent {
    /// The key written, or `None` for progress and errors.
    pub fn key(&self) -> Option<&Key> {
        match self {
            StorageEvent::Write { kv, .. } => Some(&kv.key),
            StorageEvent::Progress(_) | StorageEvent::Error(_) => None,
        }
    }
}
