//! Creates a store.
//!
//! A new database is created under another name and renamed when it is complete. So a `pintle.db` that is not a
//! database is damaged, and a WAL or a journal without a database has lost it: both are errors. An existing file is
//! never replaced.

use super::{
    damage::database_error,
    header::{APPLICATION_ID, WAL_MODE, write_mode},
    journal, lock,
    meta::Meta,
    open_error::OpenError,
    paths,
    schema::{FORMAT_VERSION, PAGE_SIZE, SCHEMA},
};
use crate::{Revision, disk, snapshot::RestoreError};
use rusqlite::Connection;
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// Creates an empty database.
pub(super) fn empty(directory: &Path) -> Result<(), OpenError> {
    make(directory, |_, _| Ok(()))
}

/// Creates a store from a new database that `fill` writes; `fill` gets the database's path.
///
/// # Errors
/// [`RestoreError::StoreExists`] when there is a store, and the errors of `fill` and of the file system. The
/// directory then has no store, or the one it had before.
pub(super) fn filled(
    directory: &Path,
    fill: impl FnOnce(&Path, &Connection) -> Result<(), RestoreError>,
) -> Result<(), RestoreError> {
    self::directory(directory)?;
    let _lock = lock::take(directory)?;
    let path = paths::database(directory);
    match path.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => make(directory, fill),
        Err(source) => Err(OpenError::Io { path, source }.into()),
        Ok(_) => Err(RestoreError::StoreExists { path }),
    }
}

/// Creates a database atomically.
fn make<E: From<OpenError>>(
    directory: &Path,
    fill: impl FnOnce(&Path, &Connection) -> Result<(), E>,
) -> Result<(), E> {
    let path = paths::database(directory);
    let [even, odd] = journal::paths(directory);
    for (path, what) in [(paths::wal(directory), "log"), (even, "journal"), (odd, "journal")] {
        if path.exists() {
            let detail = format!("there is a {what}, but the database is gone");
            return Err(OpenError::Damaged { path, detail }.into());
        }
    }
    let new = directory.join("pintle.db.new");
    let beside: [PathBuf; 3] =
        ["pintle.db.new-journal", "pintle.db.new-wal", "pintle.db.new-shm"].map(|name| directory.join(name));
    // SQLite would roll back the new database from the journal of an interrupted attempt.
    for path in beside.iter().chain([&new]) {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(OpenError::Io { path: path.clone(), source: error }.into());
            }
            _ => {}
        }
    }
    let failed = |source| database_error(&new, source);
    let connection = Connection::open(&new).map_err(failed)?;
    let begin = format!(
        "PRAGMA page_size = {}; PRAGMA auto_vacuum = INCREMENTAL; PRAGMA synchronous = EXTRA; BEGIN; {}
         PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {FORMAT_VERSION}; COMMIT;",
        PAGE_SIZE, SCHEMA,
    );
    connection.execute_batch(&begin).map_err(failed)?;
    Meta { revision: Revision(1), ..Meta::default() }.write(&connection).map_err(failed)?;
    if let Err(error) = fill(&new, &connection) {
        drop(connection);
        // The file is not a store; if this fails, the next attempt removes it first.
        let _ = fs::remove_file(&new);
        return Err(error);
    }
    connection.query_row("PRAGMA journal_mode = WAL", (), |_| Ok(())).map_err(failed)?;
    connection.close().map_err(|(_, error)| failed(error))?;
    // SQLite reports no error when the change of the mode, or the close after it, fails: it would continue in the old
    // mode, or leave a part of the database in a file beside it.
    let mode = write_mode(&new).map_err(|source| OpenError::Io { path: new.clone(), source })?;
    if mode != WAL_MODE || beside.iter().any(|path| path.exists()) {
        let source = io::Error::other("the file system does not take a write-ahead log");
        return Err(OpenError::Io { path: new, source }.into());
    }
    disk::sync_whole(&new)
        .and_then(|()| disk::rename(&new, &path))
        .map_err(|source| OpenError::Io { path: path.clone(), source })?;
    Ok(sync_directory(directory)?)
}

/// Creates the directory, durably, for its owner alone: stored values may be secret.
pub(super) fn directory(directory: &Path) -> Result<(), OpenError> {
    let failed = |source| OpenError::Io { path: directory.to_owned(), source };
    if directory.is_dir() {
        return Ok(());
    }
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(directory).map_err(failed)?;
    match directory.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => sync_directory(parent),
        _ => Ok(()),
    }
}

fn sync_directory(directory: &Path) -> Result<(), OpenError> {
    disk::sync_directory(directory).map_err(|source| OpenError::Io { path: directory.to_owned(), source })
}
