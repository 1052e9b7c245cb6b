//! The paths of a store's files, except the journal's.

use crate::disk;
use std::{
    io,
    path::{Path, PathBuf},
};

/// The file whose lock the process has that has the store open.
pub(super) fn lock(directory: &Path) -> PathBuf {
    directory.join("LOCK")
}

/// The database.
pub(super) fn database(directory: &Path) -> PathBuf {
    directory.join("pintle.db")
}

/// SQLite's WAL.
pub(super) fn wal(directory: &Path) -> PathBuf {
    directory.join("pintle.db-wal")
}

/// Makes the contents of SQLite's WAL durable.
pub(super) fn sync_wal(directory: &Path) -> io::Result<()> {
    disk::sync_if_there(&wal(directory))
}
