//! What can go wrong with a snapshot.

use super::FORMAT_VERSION;
use crate::{Key, OpenError, Revision, StorageError};
use std::{io, path::PathBuf};

/// A snapshot file that cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// Something else than a snapshot.
    #[error("{path}: this is no snapshot of Pintle")]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// Written by a program that this one does not understand.
    #[error("{path}: the snapshot has format version {found}, this program knows {FORMAT_VERSION}")]
    UnknownFormat {
        /// The file.
        path: PathBuf,
        /// The version it has.
        found: u32,
    },
    /// Not as it was written.
    #[error("{path}: the snapshot is damaged at offset {offset}: {detail}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where what is wrong begins.
        offset: u64,
        /// What is wrong.
        detail: String,
    },
    /// There is a file of that name, which is not to be replaced.
    #[error("{path}: there is such a file already")]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// Another process is writing this snapshot.
    #[error("{path}: another process is writing it")]
    Busy {
        /// The unfinished file.
        path: PathBuf,
    },
    /// The file system failed.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
}

/// A snapshot that was not made. The file does not exist.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SaveError {
    /// The file.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// The embedded store's files.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The store.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// Most likely it was asked for the wrong prefix.
    #[error("there are no keys under {prefix}")]
    Empty {
        /// What was asked for.
        prefix: String,
    },
    /// The store gave something that no snapshot can have.
    #[error("{key}: {detail}")]
    Record {
        /// Of what.
        key: Key,
        /// What is wrong.
        detail: String,
    },
}

/// A restore that did not come to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RestoreError {
    /// The snapshot. Found before anything was written, unless the file changed meanwhile.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// The embedded store's files.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The store.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The store refused a key, such as one whose value is too large for it.
    #[error("writing {key}: {source}")]
    Write {
        /// The key.
        key: Key,
        /// What the store said.
        source: StorageError,
    },
    /// There is a store already. Nothing was changed.
    #[error("{path}: there is a store already; a snapshot is restored where there is none")]
    StoreExists {
        /// Its file.
        path: PathBuf,
    },
    /// There are keys already. Nothing was changed.
    #[error(
        "there are keys under {prefix} already, such as {key}; a snapshot is restored where there are none"
    )]
    KeysExist {
        /// The snapshot's prefix.
        prefix: String,
        /// One of them.
        key: Key,
    },
    /// A restore of another snapshot was begun and not finished. Nothing was changed.
    #[error(
        "a restore of another snapshot (SHA-256 {other}) into {prefix} was not finished: finish it by restoring that \
         snapshot again, or delete the keys under {prefix} and the key {marker}"
    )]
    OtherRestore {
        /// The snapshot's prefix.
        prefix: String,
        /// The other snapshot's hash.
        other: String,
        /// The key that says so.
        marker: Key,
    },
    /// The store does not have what was written to it: somebody else wrote meanwhile.
    #[error("{key} is not as the snapshot has it ({detail}): does somebody else write to this store?")]
    Differs {
        /// Of what.
        key: Key,
        /// In what way.
        detail: String,
    },
    /// The store went on to this revision instead of beyond the snapshot's.
    #[error("the store's revision is {reached} and did not come to {wanted}")]
    Revision {
        /// Where it is.
        reached: Revision,
        /// Where it should be.
        wanted: Revision,
    },
}
