//! The errors of reads and watches, independent of HTTP.

use pintle_storage::{Revision, StorageError};

/// A failed read or a watch that could not start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CacherError {
    /// History from before `oldest` is compacted, in the cache and in the store. Served as Gone (410) with reason
    /// Expired; for a watch the message is `too old resource version: {requested} ({oldest})`.
    #[error("too old resource version: {requested} ({oldest})")]
    Expired {
        /// The requested revision.
        requested: Revision,
        /// The oldest revision from which a watch could start.
        oldest: Revision,
    },
    /// The revision was not reached within the freshness time-out. Served as Timeout (504) with cause
    /// `ResourceVersionTooLarge`, to be retried after a second.
    #[error("Too large resource version: {requested}, current: {current}")]
    TooLargeResourceVersion {
        /// The requested revision.
        requested: Revision,
        /// The revision that the cache has reached.
        current: Revision,
    },
    /// The first list has not succeeded yet. Served as Too Many Requests (429), to be retried.
    #[error("storage is (re)initializing")]
    NotReady,
    /// [`crate::Cacher::stop`] was called. Served as Service Unavailable (503).
    #[error("apiserver cacher is stopped")]
    Stopped,
    /// The store failed a read that the cache could not serve.
    #[error(transparent)]
    Storage(#[from] StorageError),
}
