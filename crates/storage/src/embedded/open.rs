//! Opens the files of a store: `LOCK`, `pintle.db`, SQLite's WAL `pintle.db-wal` and WAL index `pintle.db-shm`, and the
//! journal.

use super::{
    connection::{set_quota, writer},
    create,
    damage::{connection_error, database_error},
    expirations::Expirations,
    header::check_format,
    journal::Journal,
    load::{Loaded, good_frames, load, upgrade},
    lock,
    meta::Meta,
    open_error::OpenError,
    options::EmbeddedOptions,
    paths,
    schema::{FORMAT_VERSION, JOURNAL_FORMAT_VERSION},
    wal,
};
use crate::{Revision, key_index::KeyIndex};
use rusqlite::Connection;
use std::{
    fs::{File, TryLockError},
    io,
    path::Path,
};

/// An open store, with the state that its threads start from.
pub(super) struct Opened {
    pub(super) lock: File,
    pub(super) connection: Connection,
    pub(super) journal: Journal,
    pub(super) meta: Meta,
    pub(super) expirations: Expirations,
    /// Compacted revisions whose rows an earlier process did not delete.
    pub(super) garbage: Vec<Revision>,
}

/// Opens the store in `directory`. Creates the directory, and an empty store, if there is none yet.
pub(super) fn open(directory: &Path, options: &EmbeddedOptions) -> Result<(Opened, KeyIndex), OpenError> {
    create::directory(directory)?;
    let lock = lock::take(directory)?;
    let path = paths::database(directory);
    match check_not_empty(&path) {
        Err(OpenError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            create::empty(directory)?
        }
        checked => checked?,
    }
    let connection = writer(&path, options).map_err(|source| database_error(&path, source))?;
    let version = check_format(&path, &connection)?;
    let (loaded, journal) = load(directory, &connection, version, options)?;
    if version < FORMAT_VERSION {
        let failed = |source| connection_error(&path, &connection, "meta", source);
        upgrade(&connection, version, loaded.meta, &loaded.tombstones).map_err(failed)?;
        paths::sync_wal(directory).map_err(|source| OpenError::Io { path: paths::wal(directory), source })?;
    }
    set_quota(&connection, options).map_err(|source| database_error(&path, source))?;
    let Loaded { mut index, meta, expirations, .. } = loaded;
    let garbage = index.compact(meta.compacted);
    Ok((Opened { lock, connection, journal, meta, expirations, garbage }, index))
}

/// Checks the files of a store that no process has open, as opening it would, and applies the journal to the
/// database. A store that is open was checked when it was opened.
pub(super) fn check_unused(directory: &Path, options: &EmbeddedOptions) -> Result<(), OpenError> {
    let path = paths::database(directory);
    check_not_empty(&path)?;
    let lock_path = paths::lock(directory);
    let lock = match File::options().write(true).open(&lock_path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        file => Some(file.map_err(|source| OpenError::Io { path: lock_path.clone(), source })?),
    };
    match lock.as_ref().map(File::try_lock) {
        Some(Err(TryLockError::WouldBlock)) => return Ok(()),
        Some(Err(TryLockError::Error(source))) => return Err(OpenError::Io { path: lock_path, source }),
        Some(Ok(())) | None => {}
    }
    let connection = writer(&path, options).map_err(|source| database_error(&path, source))?;
    // The store keeps its version.
    match check_format(&path, &connection)? {
        version if version >= JOURNAL_FORMAT_VERSION => {
            load(directory, &connection, version, options).map(drop)
        }
        _ => wal::check(&paths::wal(directory), good_frames(directory, &connection)?),
    }
}

/// SQLite would create a new database in an empty file.
fn check_not_empty(path: &Path) -> Result<(), OpenError> {
    match path.metadata() {
        Err(source) => Err(OpenError::Io { path: path.to_owned(), source }),
        Ok(metadata) if metadata.len() == 0 => {
            Err(OpenError::Damaged { path: path.to_owned(), detail: "the file is empty".to_owned() })
        }
        Ok(_) => Ok(()),
    }
}
