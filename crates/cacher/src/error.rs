//! What can go wrong in reads and watches, without a word of HTTP.

use pintle_storage::{Revision, StorageError};

/// A failed read or a watch that could not start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CacherError {
    /// History from before `oldest` is gone, in the cache and in the store. A Gone (410) of reason Expired; for a
    /// watch its message is `too old resource version: {requested} ({oldest})`.
    #[error("too old resource version: {requested} ({oldest})")]
    Expired {
        /// What was asked for.
        requested: Revision,
        /// The oldest revision from which a watch could start.
        oldest: Revision,
    },
    /// The revision did not happen within the freshness time-out. A Timeout (504) whose cause is
    /// `ResourceVersionTooLarge`, to be tried again after a second.
    #[error("Too large resource version: {requested}, current: {current}")]
    TooLargeResourceVersion {
        /// What was asked for.
        requested: Revision,
        /// How far the cache is.
        current: Revision,
    },
    /// The first list has not succeeded yet. A Too Many Requests (429), to be tried again.
    #[error("storage is (re)initializing")]
    NotReady,
    /// [`crate::Cacher::stop`] was called. A Service Unavailable (503).
    #[error("apiserver cacher is stopped")]
    Stopped,
    /// The store failed a read that the cache could not serve.
    #[error(transparent)]
    Storage(#[from] StorageError),
}
