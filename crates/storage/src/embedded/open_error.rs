//! The error of opening a store.

use super::schema::{FORMAT_VERSION, OLDEST_FORMAT_VERSION};
use std::{io, path::PathBuf};

/// The error of opening a store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The store is open in another process, or in another engine of this process.
    #[error("{path}: the store is in use by another process")]
    Locked {
        /// The lock file.
        path: PathBuf,
    },
    /// The store has a format version that this program does not know.
    #[error(
        "{path}: the store has format version {found}, this program knows {OLDEST_FORMAT_VERSION} to {FORMAT_VERSION}"
    )]
    UnknownFormat {
        /// The database file.
        path: PathBuf,
        /// The store's version.
        found: i64,
    },
    /// The files do not form a valid store. Nothing was changed.
    #[error("{path}: the store is damaged: {detail}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The damage.
        detail: String,
    },
    /// The file system failed.
    #[error("{path}: {source}")]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// SQLite failed.
    #[error("{path}: {source}")]
    Database {
        /// The database file.
        path: PathBuf,
        /// SQLite's error.
        source: rusqlite::Error,
    },
}
