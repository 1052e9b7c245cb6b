//! Following writes.

use crate::{BoxFuture, Key, KeyValue, Revision, StorageError};
use std::sync::{Arc, atomic::AtomicU64};

/// What [`crate::Storage::watch`] follows.
#[derive(Debug, Clone)]
pub struct WatchRequest {
    /// Only keys with this prefix.
    pub prefix: String,
    /// Only writes after this revision.
    pub after: Revision,
}

/// What happened to a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// The key did not exist before.
    Create,
    /// The key got another value.
    Update,
    /// The key is gone; `kv` is the last value.
    Delete,
}

/// One item of a [`WatchStream`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StorageEvent {
    /// A write.
    Write {
        /// What happened.
        kind: EventKind,
        /// The write's own revision.
        revision: Revision,
        /// The pair as written; for [`EventKind::Delete`] the pair that was deleted.
        kv: KeyValue,
    },
    /// Everything up to this revision has been delivered.
    Progress(Revision),
    /// The watch is over; nothing follows. The watcher starts again from what it has seen last.
    Error(StorageError),
}

/// The receiving end of a watch. Dropping it ends the watch.
pub trait WatchReceiver: Send {
    /// The next events, at least one, in revision order, all that are ready up to some bound; `None` when the watch
    /// was closed. Cancel safe: a dropped call loses nothing.
    fn next_batch(&mut self) -> BoxFuture<'_, Option<Vec<StorageEvent>>>;

    /// How far this watch's queue has come, for engines that queue a write before they acknowledge it: every write to
    /// the prefix up to [`Storage::current_revision`](crate::Storage::current_revision) has been delivered or has a
    /// revision up to this one. A follower that has seen this revision therefore knows, without waiting for progress,
    /// that it has seen all that was acknowledged.
    ///
    /// The value grows, but for the times at which it is [`u64::MAX`]: from the moment on at which the engine stops
    /// queueing, even if the follower has not seen the end yet, and while an engine over a network does not know what it
    /// has to queue. Then it says nothing. Engines that can never tell return `None`.
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
