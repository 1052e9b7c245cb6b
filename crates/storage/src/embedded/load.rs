//! Loads a store: reads the index, applies the journal to the database, and upgrades the format.

use super::{
    damage::{connection_error, damaged, database_error},
    expirations::Expirations,
    journal::{self, Found, Journal, JournaledWrite},
    locate::{self, Place},
    meta::Meta,
    open_error::OpenError,
    options::EmbeddedOptions,
    paths,
    row::{Entry, Inserts},
    scan::scan,
    schema::{FORMAT_VERSION, JOURNAL_FORMAT_VERSION},
    value::StoredValue,
    wal,
};
use crate::{
    EventKind, Revision,
    key_index::{KeyIndex, Version},
};
use rusqlite::Connection;
use std::path::Path;

/// The length of a journal segment is this fraction (a quarter) of the WAL's usual length.
const SEGMENT_SHARE: u64 = 4;

/// The number of valid frames in the WAL, according to SQLite.
pub(super) fn good_frames(directory: &Path, connection: &Connection) -> Result<u64, OpenError> {
    let frames = connection.query_row("PRAGMA wal_checkpoint(NOOP)", (), |row| row.get::<_, i64>(1));
    let frames = frames.map_err(|source| database_error(&paths::database(directory), source))?;
    Ok(u64::try_from(frames).unwrap_or_default())
}

/// The in-memory state of a store.
#[derive(Default)]
pub(super) struct Loaded {
    pub(super) index: KeyIndex,
    pub(super) meta: Meta,
    pub(super) expirations: Expirations,
    /// The revisions of deletes.
    pub(super) tombstones: Vec<Revision>,
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
pub(super) fn load(
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
pub(super) fn upgrade(
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
