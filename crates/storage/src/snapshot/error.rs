//! The errors of snapshots.

use super::FORMAT_VERSION;
use crate::{Key, OpenError, Revision, StorageError};
use std::{io, path::PathBuf};

/// The error of reading or writing a snapshot file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// The file is not a snapshot.
    #[error("{path}: this is no snapshot of Pintle")]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The file has a format version that this program does not know.
    #[error("{path}: the snapshot has format version {found}, this program knows {FORMAT_VERSION}")]
    UnknownFormat {
        /// The file.
        path: PathBuf,
        /// The file's version.
        found: u32,
    },
    /// The file fails its checks.
    #[error("{path}: the snapshot is damaged at offset {offset}: {detail}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The offset of the damage, in bytes.
        offset: u64,
        /// The damage.
        detail: String,
    },
    /// The file exists, and overwriting is off.
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
        /// The error of the operating system.
        source: io::Error,
    },
}

/// The error of a save. The file does not exist then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SaveError {
    /// Writing the snapshot file failed.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// The embedded store's files cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The store failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// There are no keys: most likely the prefix is wrong.
    #[error("there are no keys under {prefix}")]
    Empty {
        /// The requested prefix.
        prefix: String,
    },
    /// The store returned a record that no snapshot may contain.
    #[error("{key}: {detail}")]
    Record {
        /// The record's key.
        key: Key,
        /// The reason.
        detail: String,
    },
}

/// The error of a restore.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RestoreError {
    /// The snapshot is unusable. Detected before anything is written, unless the file changed meanwhile.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// The embedded store's files cannot be created or opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The store failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The store refused a key, such as one whose value is too large for it.
    #[error("writing {key}: {source}")]
    Write {
        /// The key.
        key: Key,
        /// The store's error.
        source: StorageError,
    },
    /// The store would begin near the end of the revisions. Nothing was changed.
    #[error(
        "the revision {of_snapshot} of the snapshot and {bump} more are too high: a store begins below 2^62"
    )]
    RevisionTooHigh {
        /// The snapshot's revision.
        of_snapshot: u64,
        /// The revisions by which the store's revision was to exceed it.
        bump: u64,
    },
    /// There is a store already. Nothing was changed.
    #[error("{path}: there is a store already; a snapshot is restored where there is none")]
    StoreExists {
        /// The store's file.
        path: PathBuf,
    },
    /// There are keys already. Nothing was changed.
    #[error(
        "there are keys under {prefix} already, such as {key}; a snapshot is restored where there are none"
    )]
    KeysExist {
        /// The snapshot's prefix.
        prefix: String,
        /// An existing key.
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
        /// The other snapshot's SHA-256.
        other: String,
        /// The key that marks the unfinished restore.
        marker: Key,
    },
    /// The store does not have the restored pairs: another client wrote meanwhile.
    #[error("{key} is not as the snapshot has it ({detail}): does somebody else write to this store?")]
    Differs {
        /// A differing key.
        key: Key,
        /// The difference.
        detail: String,
    },
    /// The store's revision did not get beyond the snapshot's.
    #[error("the store's revision is {reached} and did not come to {wanted}")]
    Revision {
        /// The store's revision.
        reached: Revision,
        /// The required revision.
        wanted: Revision,
    },
}
