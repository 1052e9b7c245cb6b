//! What can go wrong in a store, without a word of HTTP.

use crate::{KeyValue, Revision, TransformError};

/// A failed read, watch, compaction or the like.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StorageError {
    /// History before `compacted` is gone.
    #[error("required revision has been compacted (oldest kept: {compacted})")]
    Compacted {
        /// The oldest revision still readable.
        compacted: Revision,
    },
    /// The revision has not happened yet.
    #[error("required revision {requested} is in the future (current: {current})")]
    FutureRevision {
        /// What was asked for.
        requested: Revision,
        /// What there is.
        current: Revision,
    },
    /// The store was closed.
    #[error("storage is closed")]
    Closed,
    /// A watcher was too slow, and events were dropped; it starts again from what it has seen last.
    #[error("watcher is too slow")]
    Lagged,
    /// The medium failed and the engine stopped writing (a lost sync cannot be retried).
    #[error("storage stopped writing: {0}")]
    Poisoned(String),
    /// Stored bytes that cannot be read back.
    #[error("corrupt storage: {0}")]
    Corrupt(String),
    /// Anything else of the medium or the connection.
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
    /// The key's `mod_revision` is not the expected one; `current` is the pair as it is.
    #[error("the stored revision differs from the expected one")]
    Conflict {
        /// The pair now, or `None` when the key does not exist.
        current: Option<KeyValue>,
    },
    /// The value could not be brought into the form in which it is stored; nothing was written.
    #[error(transparent)]
    Transform(TransformError),
    /// The engine failed; whether the write happened is not known unless the variant says so.
    #[error(transparent)]
    Storage(#[from] StorageError),
}
