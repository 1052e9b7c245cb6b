//! The errors of a store, independent of HTTP.

use crate::{KeyValue, Revision, TransformError};

/// The error of a read, watch, compaction or other call that is not a write.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StorageError {
    /// History before `compacted` is compacted.
    #[error("required revision has been compacted (oldest kept: {compacted})")]
    Compacted {
        /// The oldest revision still readable.
        compacted: Revision,
    },
    /// The revision has not been reached yet.
    #[error("required revision {requested} is in the future (current: {current})")]
    FutureRevision {
        /// The requested revision.
        requested: Revision,
        /// The store's revision.
        current: Revision,
    },
    /// The store was closed.
    #[error("storage is closed")]
    Closed,
    /// A watcher was too slow, and events were dropped; it restarts from the last revision it has seen.
    #[error("watcher is too slow")]
    Lagged,
    /// The medium failed and the engine stopped writing (a failed sync must not be retried).
    #[error("storage stopped writing: {0}")]
    Poisoned(String),
    /// Stored bytes fail their checks.
    #[error("corrupt storage: {0}")]
    Corrupt(String),
    /// The value, or the request with it, is larger than the store takes; nothing was written. The text is that of the store.
    #[error("{0}")]
    TooLarge(String),
    /// An error of etcd, in its words.
    #[error("{0}")]
    Etcd(String),
    /// Any other failure of the medium or the connection.
    #[error("storage failed: {0}")]
    Engine(String),
}

/// A failed write.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// Create of a key that exists.
    #[error("key exists")]
    KeyExists,
    /// The key's `mod_revision` is not the expected one; `current` is the present pair.
    #[error("the stored revision differs from the expected one")]
    Conflict {
        /// The pair now, or `None` when the key does not exist.
        current: Option<KeyValue>,
    },
    /// A transformer failed for the value; nothing was written.
    #[error(transparent)]
    Transform(TransformError),
    /// The engine failed; unless the variant says otherwise, the write may or may not have happened.
    #[error(transparent)]
    Storage(#[from] StorageError),
}
