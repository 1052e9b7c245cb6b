//! The files of a store: `LOCK`, `pintle.db`, SQLite's WAL `pintle.db-wal` and WAL index `pintle.db-shm`, and the
//! journal.
//!
//! A new database is created under another name and renamed when it is complete. So a `pintle.db` that is not a
//! database is damaged, and a WAL or a journal without a database has lost it: both are errors. An existing file is
//! never replaced.

use super::{
    EmbeddedOptions,
    checkpointer::Checkpointer,
    committer::Expirations,
    journal::{self, Found, Journal, JournaledWrite},
    locate::{self, Place},
    meta::Meta,
    open_error::{FORMAT_VERSION, JOURNAL_FORMAT_VERSION, OLDEST_FORMAT_VERSION, OpenError},
    paths,
    row::{self, Entry, Inserts},
    scan::scan,
    value::StoredValue,
    wal,
};
use crate::{
    EventKind, Revision,
    key_index::{KeyIndex, Version},
    snapshot::RestoreError,
};
use rusqlite::{Connection, ErrorCode, OpenFlags, config::DbConfig};
use std::{
    fs::{self, File, TryLockError},
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// "ptle": the application id by which `file` and SQLite's tools recognize the database.
const APPLICATION_ID: i64 = 0x7074_6c65;
/// The length of a journal segment is this fraction (a quarter) of the WAL's usual length.
const SEGMENT_SHARE: u64 = 4;

/// The longest wait for the lock: a process that was just killed may still hold it, and so may a child between fork
/// and exec.
const LOCK_PATIENCE: Duration = Duration::from_millis(250);

/// The offset in the database header of the write and read versions, in bytes.
const MODE_OFFSET: u64 = 18;
/// Their values for a database in WAL mode.
const WAL_MODE: [u8; 2] = [2, 2];

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

pub(super) fn open(directory: &Path, options: &EmbeddedOptions) -> Result<(Opened, KeyIndex), OpenError> {
    create_directory(directory)?;
    let lock = lock(&directory.join("LOCK"))?;
    let path = paths::database(directory);
    match check_not_empty(&path) {
        Err(OpenError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => create(directory)?,
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

/// Creates the directory, durably, for its owner alone: stored values may be secret.
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
    let started = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if started.elapsed() < LOCK_PATIENCE => {
                #[expect(clippy::disallowed_methods, reason = "a store is opened before anybody is served")]
                std::thread::sleep(LOCK_PATIENCE / 50);
            }
            Err(TryLockError::WouldBlock) => return Err(OpenError::Locked { path: path.to_owned() }),
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
    }
}

/// Creates an empty database.
fn create(directory: &Path) -> Result<(), OpenError> {
    make(directory, |_, _| Ok(()))
}

/// Creates a store from a new database that `fill` writes; `fill` gets the database's path.
///
/// # Errors
/// [`RestoreError::StoreExists`] when there is a store, and the errors of `fill` and of the file system. The
/// directory then has no store, or the one it had before.
pub(super) fn create_filled(
    directory: &Path,
    fill: impl FnOnce(&Path, &Connection) -> Result<(), RestoreError>,
) -> Result<(), RestoreError> {
    create_directory(directory)?;
    let _lock = lock(&directory.join("LOCK"))?;
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
        row::PAGE_SIZE,
        row::SCHEMA,
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
    let publish = || {
        File::open(&new)?.sync_all()?;
        fs::rename(&new, &path)
    };
    publish().map_err(|source| OpenError::Io { path: path.clone(), source })?;
    Ok(sync_directory(directory)?)
}

/// The write and read versions in the database's header.
fn write_mode(database: &Path) -> io::Result<[u8; 2]> {
    let mut mode = [0; 2];
    let mut file = File::open(database)?;
    file.seek(SeekFrom::Start(MODE_OFFSET))?;
    file.read_exact(&mut mode)?;
    Ok(mode)
}

/// Checks the files of a store that no process has open, as opening it would, and applies the journal to the
/// database. A store that is open was checked when it was opened.
pub(super) fn check_unused(directory: &Path, options: &EmbeddedOptions) -> Result<(), OpenError> {
    let path = paths::database(directory);
    check_not_empty(&path)?;
    let lock_path = directory.join("LOCK");
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

/// The sync settings of a writing connection: only checkpoints sync. The journal has the writes that are not synced.
const SYNCING: &str = "PRAGMA synchronous = NORMAL; PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON;
    PRAGMA wal_autocheckpoint = 0; PRAGMA trusted_schema = OFF;";

fn connect(path: &Path, flags: OpenFlags, cache_bytes: u64) -> rusqlite::Result<Connection> {
    // Each connection is used by one thread at a time, so SQLite need not lock it.
    let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    // Only the apply thread checkpoints: a checkpoint must not follow a failed sync.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.execute_batch(&format!(
        "PRAGMA cache_size = -{}; PRAGMA cell_size_check = ON;",
        cache_bytes / 1024
    ))?;
    Ok(connection)
}

fn writer(path: &Path, options: &EmbeddedOptions) -> rusqlite::Result<Connection> {
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE, options.cache_bytes)?;
    // A WAL that grew during a long read is truncated when it restarts.
    let wal_limit = Checkpointer::longest(options.wal_bytes);
    connection.execute_batch(&format!("{SYNCING} PRAGMA journal_size_limit = {wal_limit};"))?;
    Ok(connection)
}

/// Limits the growth of the database from now on. Journaled writes beyond the limit were accepted before.
fn set_quota(connection: &Connection, options: &EmbeddedOptions) -> rusqlite::Result<()> {
    let Some(bytes) = options.quota_bytes else { return Ok(()) };
    let pages = bytes / u64::from(row::PAGE_SIZE);
    connection.query_row(&format!("PRAGMA max_page_count = {pages}"), (), |_| Ok(()))
}

/// Opens a read-only connection.
pub(super) fn reader(directory: &Path, cache_bytes: u64) -> rusqlite::Result<Connection> {
    connect(&paths::database(directory), OpenFlags::SQLITE_OPEN_READ_ONLY, cache_bytes)
}

/// Converts an error of SQLite from a place where only the first page and the schema table, which begins there, were
/// read.
pub(super) fn database_error(path: &Path, source: rusqlite::Error) -> OpenError {
    match source.sqlite_error_code() {
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
            damaged(path, Some(Place { path: path.to_owned(), offset: 0 }), &source.to_string())
        }
        _ => OpenError::Database { path: path.to_owned(), source },
    }
}

/// Converts an error of SQLite on an open database. For damage it adds the result and the place of SQLite's own
/// check; without a result, the place is the root of `table`.
pub(super) fn connection_error(
    path: &Path,
    connection: &Connection,
    table: &str,
    source: rusqlite::Error,
) -> OpenError {
    if source.sqlite_error_code() != Some(ErrorCode::DatabaseCorrupt) {
        return database_error(path, source);
    }
    let (place, detail) = match locate::complaint(connection) {
        Some((place, complaint)) => (place, format!("{source}: {complaint}")),
        None => (None, source.to_string()),
    };
    match place.or_else(|| locate::root(connection, table)) {
        Some(place) => damaged(path, Some(place), &detail),
        None => database_error(path, source),
    }
}

/// The error for damage, at its place in the database or the WAL if that is known.
pub(super) fn damaged(path: &Path, place: Option<Place>, what: &str) -> OpenError {
    match place {
        Some(Place { path, offset }) => {
            OpenError::Damaged { path, detail: format!("at offset {offset}: {what}") }
        }
        None => OpenError::Damaged { path: path.to_owned(), detail: what.to_owned() },
    }
}

/// Checks the first page, and returns the format version.
pub(super) fn check_format(path: &Path, connection: &Connection) -> Result<i64, OpenError> {
    let failed = |source| connection_error(path, connection, "sqlite_schema", source);
    let header = |offset, what: &str| damaged(path, Some(Place { path: path.to_owned(), offset }), what);
    let pragma = |name: &str| connection.query_row(&format!("PRAGMA {name}"), (), |row| row.get::<_, i64>(0));
    let application = pragma("application_id").map_err(failed)?;
    if application != APPLICATION_ID {
        return Err(header(68, &format!("its application id is {application:#x}, not {APPLICATION_ID:#x}")));
    }
    let mode = connection.query_row("PRAGMA journal_mode", (), |row| row.get::<_, String>(0));
    if mode.map_err(failed)? != "wal" {
        return Err(header(MODE_OFFSET, "the database does not name its log"));
    }
    let found = pragma("user_version").map_err(failed)?;
    if !(OLDEST_FORMAT_VERSION..=FORMAT_VERSION).contains(&found) {
        return Err(OpenError::UnknownFormat { path: path.to_owned(), found });
    }
    if pragma("page_size").map_err(failed)? != i64::from(row::PAGE_SIZE) {
        return Err(header(16, "its pages have another size"));
    }
    if schema(connection).map_err(failed)? != words(row::SCHEMA) {
        return Err(header(100, "its tables are not those of a store"));
    }
    Ok(found)
}

/// The statements that created the tables, in order.
fn schema(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare("SELECT sql, rootpage FROM sqlite_schema ORDER BY rowid")?;
    let mut rows = statement.query(())?;
    let (mut found, mut roots) = (Vec::new(), Vec::new());
    while let Some(row) = rows.next()? {
        let sql = row.get_ref(0)?.as_str().unwrap_or_default();
        found.extend(words(&format!("{sql};")));
        let root: i64 = row.get(1)?;
        if roots.contains(&root) {
            found.push("two tables in one place".to_owned());
        }
        roots.push(root);
    }
    Ok(found)
}

fn words(sql: &str) -> Vec<String> {
    sql.split_whitespace().map(str::to_owned).collect()
}

/// The number of valid frames in the WAL, according to SQLite.
fn good_frames(directory: &Path, connection: &Connection) -> Result<u64, OpenError> {
    let frames = connection.query_row("PRAGMA wal_checkpoint(NOOP)", (), |row| row.get::<_, i64>(1));
    let frames = frames.map_err(|source| database_error(&paths::database(directory), source))?;
    Ok(u64::try_from(frames).unwrap_or_default())
}

/// The in-memory state of a store.
#[derive(Default)]
struct Loaded {
    index: KeyIndex,
    meta: Meta,
    expirations: Expirations,
    tombstones: Vec<Revision>,
}

impl Loaded {
    fn add(&mut self, entry: Entry) {
        let version = match entry.kind {
            EventKind::Create | EventKind::Update => Version::live(entry.revision, entry.create_revision),
            EventKind::Delete => {
                self.tombstones.push(entry.revision);
                Version::tombstone(entry.revision)
            }
        };
        self.index.insert(&entry.key, version);
        if entry.expires != 0 {
            self.expirations.insert((entry.expires, entry.key, entry.revision));
        }
    }
}

/// Reads the index, and applies the journal to the database. Everything is durable afterwards.
fn load(
    directory: &Path,
    connection: &Connection,
    version: i64,
    options: &EmbeddedOptions,
) -> Result<(Loaded, Journal), OpenError> {
    let (path, wal_path) = (paths::database(directory), paths::wal(directory));
    let failed = |source| connection_error(&path, connection, "writes", source);
    let frames = good_frames(directory, connection)?;
    if version < JOURNAL_FORMAT_VERSION {
        wal::check(&wal_path, frames)?;
    }
    let mut loaded = Loaded::default();
    loaded.meta = scan(&path, connection, version, |entry| loaded.add(entry))?;
    let newest = loaded.meta.revision;
    let Found { next_number, base, writes } = journal::read(directory, newest)?;
    if newest < base {
        let what = format!("the writes after revision {newest} are missing, which were synced up to {base}");
        return Err(match wal::end(&wal_path, frames) {
            Some(offset) => damaged(&path, Some(Place { path: wal_path, offset }), &what),
            None => damaged(&path, locate::root(connection, "writes"), &what),
        });
    }
    wal::cut(&wal_path, frames)?;
    if !writes.is_empty() {
        tracing::info!(writes = writes.len(), "the journal has writes that the database lacks");
        replay(connection, &writes).map_err(failed)?;
        for write in writes {
            loaded.meta.revision = write.entry.revision;
            loaded.add(write.entry);
        }
    }
    paths::sync_wal(directory).map_err(|source| OpenError::Io { path: wal_path, source })?;
    let segment_bytes = options.wal_bytes / SEGMENT_SHARE;
    let journal = Journal::new(directory, next_number, loaded.meta.revision, segment_bytes);
    Ok((loaded, journal))
}

/// Inserts the writes that the database lacks.
fn replay(connection: &Connection, writes: &[JournaledWrite]) -> rusqlite::Result<()> {
    connection.execute_batch("BEGIN IMMEDIATE")?;
    let mut inserts = Inserts::new(connection)?;
    for JournaledWrite { entry, checksum, stored } in writes {
        inserts.insert(entry, *checksum, stored)?;
    }
    drop(inserts);
    connection.execute_batch("COMMIT")
}

/// Upgrades the store in one transaction, so that it has either the old version or the new one. Version 1 has no
/// value rows for deletes and no checksum of the numbers; version 2 has no compressed values; version 3 has no
/// journal, and version 4 no dictionary.
fn upgrade(
    connection: &Connection,
    version: i64,
    meta: Meta,
    tombstones: &[Revision],
) -> rusqlite::Result<()> {
    connection.execute_batch("BEGIN IMMEDIATE")?;
    if version == 1 {
        let mut inserts = Inserts::new(connection)?;
        for revision in tombstones {
            inserts.value(*revision, &StoredValue::empty())?;
        }
        drop(inserts);
        meta.write(connection)?;
    }
    connection.execute_batch(&format!("PRAGMA user_version = {FORMAT_VERSION}; COMMIT"))
}
