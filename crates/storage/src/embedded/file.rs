//! The files of a store: `LOCK`, `pintle.db`, and SQLite's log `pintle.db-wal` and log index `pintle.db-shm`.
//!
//! A new database is made under another name and renamed when it is whole, so a `pintle.db` that is not one was
//! damaged, and a log without a database lost it: both are errors. Nothing that exists is ever replaced.

use super::{
    EmbeddedOptions,
    committer::Expirations,
    log,
    row::{self, Entry},
};
use crate::{
    EventKind, Revision,
    key_index::{KeyIndex, Version},
};
use rusqlite::{Connection, ErrorCode, OpenFlags, config::DbConfig};
use std::{
    fs::{self, File, TryLockError},
    io,
    path::{Path, PathBuf},
};

/// "ptle": what `file` and SQLite's tools tell the database by.
const APPLICATION_ID: i64 = 0x7074_6c65;
/// The version of tables and rows. A program opens only versions it knows.
pub(super) const FORMAT_VERSION: i64 = 1;

/// Why a store does not open.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another process, or another engine of this one, has the store open.
    #[error("{path}: the store is in use by another process")]
    Locked {
        /// The lock file.
        path: PathBuf,
    },
    /// Written by a program that this one does not understand.
    #[error("{path}: the store has format version {found}, this program knows {FORMAT_VERSION}")]
    UnknownFormat {
        /// The database file.
        path: PathBuf,
        /// The version it has.
        found: i64,
    },
    /// Not what a store looks like. Nothing was changed.
    #[error("{path}: the store is damaged: {detail}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        detail: String,
    },
    /// The file system failed.
    #[error("{path}: {source}")]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
    /// SQLite failed.
    #[error("{path}: {source}")]
    Database {
        /// The database file.
        path: PathBuf,
        /// What it said.
        source: rusqlite::Error,
    },
}

/// An open store, as the commit thread starts with it.
pub(super) struct Opened {
    pub(super) lock: File,
    pub(super) connection: Connection,
    pub(super) index: KeyIndex,
    pub(super) revision: Revision,
    pub(super) compacted: Revision,
    pub(super) expirations: Expirations,
    /// Rows that an earlier process compacted away but did not get to delete.
    pub(super) garbage: Vec<Revision>,
}

pub(super) fn database_path(directory: &Path) -> PathBuf {
    directory.join("pintle.db")
}

pub(super) fn log_path(directory: &Path) -> PathBuf {
    directory.join("pintle.db-wal")
}

pub(super) fn open(directory: &Path, options: &EmbeddedOptions) -> Result<Opened, OpenError> {
    create_directory(directory)?;
    let lock = lock(&directory.join("LOCK"))?;
    let path = database_path(directory);
    match path.metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => create(directory)?,
        Err(source) => return Err(OpenError::Io { path, source }),
        // SQLite would take an empty file for a new database.
        Ok(metadata) if metadata.len() == 0 => {
            return Err(OpenError::Damaged { path, detail: "the file is empty".to_owned() });
        }
        Ok(_) => {}
    }
    let connection = writer(&path, options).map_err(|source| database_error(&path, source))?;
    check_format(&path, &connection)?;
    check_log(directory, &connection)?;
    load(&path, connection, lock)
}

/// Makes the directory, durably, for its owner alone: what is stored may be secret.
fn create_directory(directory: &Path) -> Result<(), OpenError> {
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
    let sync = || File::open(directory)?.sync_all();
    sync().map_err(|source| OpenError::Io { path: directory.to_owned(), source })
}

fn lock(path: &Path) -> Result<File, OpenError> {
    let failed = |source| OpenError::Io { path: path.to_owned(), source };
    let file = File::options().create(true).truncate(false).write(true).open(path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(OpenError::Locked { path: path.to_owned() }),
        Err(TryLockError::Error(source)) => Err(failed(source)),
    }
}

/// Makes an empty database, all of it or none.
fn create(directory: &Path) -> Result<(), OpenError> {
    let path = database_path(directory);
    if log_path(directory).exists() {
        let detail = "there is a log, but the database is gone".to_owned();
        return Err(OpenError::Damaged { path: log_path(directory), detail });
    }
    let new = directory.join("pintle.db.new");
    let made = fs::remove_file(&new).or_else(|error| match error.kind() {
        io::ErrorKind::NotFound => Ok(()),
        _ => Err(error),
    });
    made.map_err(|source| OpenError::Io { path: new.clone(), source })?;
    let fill = || {
        let connection = Connection::open(&new)?;
        connection.execute_batch(&format!(
            "PRAGMA page_size = {}; PRAGMA synchronous = EXTRA; BEGIN; {}
             PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {FORMAT_VERSION}; COMMIT;
             PRAGMA journal_mode = WAL;",
            row::PAGE_SIZE,
            row::SCHEMA,
        ))?;
        connection.close().map_err(|(_, error)| error)
    };
    fill().map_err(|source| database_error(&new, source))?;
    let publish = || {
        File::open(&new)?.sync_all()?;
        fs::rename(&new, &path)
    };
    publish().map_err(|source| OpenError::Io { path: path.clone(), source })?;
    sync_directory(directory)
}

fn connect(path: &Path, flags: OpenFlags, cache_bytes: u64) -> rusqlite::Result<Connection> {
    // Each connection is used by one thread at a time, so SQLite need not lock it.
    let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    // Copying the log is the commit thread's decision: it must not happen behind a failed sync.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.execute_batch(&format!("PRAGMA cache_size = -{};", cache_bytes / 1024))?;
    Ok(connection)
}

fn writer(path: &Path, options: &EmbeddedOptions) -> rusqlite::Result<Connection> {
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE, options.cache_bytes)?;
    if let Some(bytes) = options.quota_bytes {
        let pages = bytes / u64::from(row::PAGE_SIZE);
        connection.query_row(&format!("PRAGMA max_page_count = {pages}"), (), |_| Ok(()))?;
    }
    connection.execute_batch(
        "PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON;
         PRAGMA wal_autocheckpoint = 0; PRAGMA trusted_schema = OFF;",
    )?;
    Ok(connection)
}

/// A connection that only reads.
pub(super) fn reader(directory: &Path, cache_bytes: u64) -> rusqlite::Result<Connection> {
    connect(&database_path(directory), OpenFlags::SQLITE_OPEN_READ_ONLY, cache_bytes)
}

fn database_error(path: &Path, source: rusqlite::Error) -> OpenError {
    let path = path.to_owned();
    match source.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            OpenError::Damaged { path, detail: source.to_string() }
        }
        _ => OpenError::Database { path, source },
    }
}

fn check_format(path: &Path, connection: &Connection) -> Result<(), OpenError> {
    let pragma = |name: &str| connection.query_row(&format!("PRAGMA {name}"), (), |row| row.get::<_, i64>(0));
    let application = pragma("application_id").map_err(|source| database_error(path, source))?;
    if application != APPLICATION_ID {
        let detail = format!("its application id is {application:#x}, not {APPLICATION_ID:#x}");
        return Err(OpenError::Damaged { path: path.to_owned(), detail });
    }
    let found = pragma("user_version").map_err(|source| database_error(path, source))?;
    if found != FORMAT_VERSION {
        return Err(OpenError::UnknownFormat { path: path.to_owned(), found });
    }
    Ok(())
}

/// Looks for damage in the log, which SQLite has read by now.
fn check_log(directory: &Path, connection: &Connection) -> Result<(), OpenError> {
    let frames = connection.query_row("PRAGMA wal_checkpoint(NOOP)", (), |row| row.get::<_, i64>(1));
    let frames = frames.map_err(|source| database_error(&database_path(directory), source))?;
    log::check(&log_path(directory), u64::try_from(frames).unwrap_or_default())
}

/// Reads the index.
fn load(path: &Path, connection: Connection, lock: File) -> Result<Opened, OpenError> {
    let failed = |source| database_error(path, source);
    let damaged = |detail: String| OpenError::Damaged { path: path.to_owned(), detail };
    let meta = |name: &str| {
        let number = "SELECT number FROM meta WHERE name = ?";
        connection.query_row(number, (name,), |row| row.get(0)).map(row::revision).map_err(failed)
    };
    let compacted = meta("compacted")?;
    let mut revision = meta("revision")?;
    let mut index = KeyIndex::default();
    let mut expirations = Expirations::new();
    let mut entries = connection.prepare(row::SELECT_ENTRIES).map_err(failed)?;
    for entry in entries.query_map((), Entry::from_row).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let entry = entry.map_err(|at| damaged(format!("the row of revision {at} fails its checksum")))?;
        let version = match entry.kind {
            EventKind::Create | EventKind::Update => Version::live(entry.revision, entry.create_revision),
            EventKind::Delete => Version::tombstone(entry.revision),
        };
        index.insert(&entry.key, version);
        revision = revision.max(entry.revision);
        if entry.expires != 0 {
            expirations.insert((entry.expires, entry.key, entry.revision));
        }
    }
    drop(entries);
    if compacted > revision {
        return Err(damaged(format!("it is compacted at {compacted}, after its newest revision {revision}")));
    }
    let garbage = index.compact(compacted);
    Ok(Opened { lock, connection, index, revision, compacted, expirations, garbage })
}
