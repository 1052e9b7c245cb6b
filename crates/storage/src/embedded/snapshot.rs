//! Saves a store that a server may have open, and restores a store from a snapshot.
//!
//! A save reads the database beside the server, in one read transaction: the WAL keeps all pages that the transaction
//! sees until it ends, despite later writes and compactions. It begins when the database has all writes that the
//! journal had. The server is not involved, and its writers do not wait; only its WAL grows for the duration of the
//! save.
//!
//! A restored store has the snapshot's keys with their revisions and no earlier history: it is compacted at its own
//! revision, so a client that resumes from that revision continues, and one that resumes from before gets an error.

use super::{
    connection, create,
    damage::database_error,
    header::check_format,
    journal,
    meta::{Kept, Meta},
    open,
    open_error::OpenError,
    options::EmbeddedOptions,
    paths,
    row::{self, Entry, Inserts},
    scan::scan,
    value::StoredValue,
};
use crate::{
    EventKind, Key, Revision,
    snapshot::{
        self, RestoreError, Restored, SaveError, SnapshotError, SnapshotFile, SnapshotHeader, SnapshotRecord,
        SnapshotSummary, now_milliseconds,
    },
};
use rusqlite::{Connection, ErrorCode};
use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// The longest wait for a server to apply its acknowledged writes to the database.
const PATIENCE: Duration = Duration::from_secs(10);
/// The page cache while a store is filled, in bytes.
const FILL_CACHE_BYTES: u64 = 16 << 20;

/// The state of an embedded store at one moment, to be saved. A server may have the store open.
pub struct EmbeddedSnapshot {
    path: PathBuf,
    /// In a read transaction.
    connection: Connection,
    revision: Revision,
    live: BTreeMap<Key, Live>,
}

/// The latest write of a live key.
#[derive(Debug, Clone, Copy)]
struct Live {
    mod_revision: Revision,
    create_revision: Revision,
    expires: u64,
}

impl EmbeddedSnapshot {
    /// Reads the present state of the store in `directory`.
    ///
    /// # Errors
    /// When there is no store, when its format is unknown, when it is damaged, or when the file system fails.
    pub fn open(directory: impl AsRef<Path>) -> Result<EmbeddedSnapshot, OpenError> {
        let directory = directory.as_ref();
        let path = paths::database(directory);
        let options = EmbeddedOptions::default();
        open::check_unused(directory, &options)?;
        let failed = |source| database_error(&path, source);
        let acknowledged = journal::newest(directory)?;
        let connection = connection::reader(directory, options.cache_bytes).map_err(failed)?;
        wait_for(&connection, acknowledged).map_err(failed)?;
        let version = check_format(&path, &connection)?;
        let (revision, live) = index(&path, &connection, version)?;
        if revision < acknowledged {
            let behind = format!(
                "the server has not brought the database up to revision {acknowledged}, it is at {revision}"
            );
            return Err(OpenError::Io { path, source: io::Error::new(io::ErrorKind::TimedOut, behind) });
        }
        Ok(EmbeddedSnapshot { path, connection, revision, live })
    }

    /// The store's revision at the time of the snapshot.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// The number of keys outside `prefix`, which a snapshot of `prefix` omits.
    pub fn keys_outside(&self, prefix: &str) -> usize {
        self.live.keys().filter(|key| !key.as_str().starts_with(prefix)).count()
    }

    /// Saves all keys under `prefix` into a new file at `path`. Calls `progress` with the number of keys written.
    ///
    /// # Errors
    /// When a value is damaged, when there are no keys, or when the file cannot be written. No file is left then.
    pub fn save(
        &self,
        prefix: &str,
        program: &str,
        path: &Path,
        overwrite: bool,
        progress: &mut dyn FnMut(u64),
    ) -> Result<SnapshotSummary, SaveError> {
        let mut keys = self.live.iter().filter(|(key, _)| key.as_str().starts_with(prefix)).peekable();
        if keys.peek().is_none() {
            return Err(SaveError::Empty { prefix: prefix.to_owned() });
        }
        let header = SnapshotHeader {
            prefix: prefix.to_owned(),
            revision: self.revision,
            saved: now_milliseconds(),
            source: "embedded".to_owned(),
            program: program.to_owned(),
        };
        let mut output = SnapshotFile::create(path, overwrite, header)?;
        for (key, live) in keys {
            output.write(&self.record(key, *live)?)?;
            if output.keys().is_multiple_of(1000) {
                progress(output.keys());
            }
        }
        progress(output.keys());
        Ok(output.finish()?)
    }

    fn record(&self, key: &Key, live: Live) -> Result<SnapshotRecord, SaveError> {
        let Live { mod_revision, create_revision, expires } = live;
        let damaged = |detail: String| OpenError::Damaged { path: self.path.clone(), detail };
        let value = row::value(&self.connection, mod_revision)
            .map_err(|error| damaged(format!("{key}: {error}")))?
            .ok_or_else(|| damaged(format!("{key}: the value of revision {mod_revision} is missing")))?;
        Ok(SnapshotRecord { key: key.clone(), value, create_revision, mod_revision, expires })
    }
}

/// Begins a transaction that sees all writes up to a revision, which a server is about to apply to the database;
/// after a time-out, one that sees the present state.
fn wait_for(connection: &Connection, revision: Revision) -> rusqlite::Result<()> {
    let started = Instant::now();
    loop {
        connection.execute_batch("BEGIN")?;
        let recorded = Meta::read(connection)?.map_or(Revision(0), |meta| meta.revision);
        if row::newest_value(connection)?.max(recorded) >= revision || started.elapsed() >= PATIENCE {
            return Ok(());
        }
        connection.execute_batch("COMMIT")?;
        #[expect(clippy::disallowed_methods, reason = "a snapshot is taken by a process that serves nobody")]
        std::thread::sleep(PATIENCE / 1000);
    }
}

/// The live keys, and the latest revision.
fn index(
    path: &Path,
    connection: &Connection,
    version: i64,
) -> Result<(Revision, BTreeMap<Key, Live>), OpenError> {
    let mut live = BTreeMap::new();
    let meta = scan(path, connection, version, |entry| {
        let Entry { revision: mod_revision, create_revision, expires, .. } = entry;
        match entry.kind {
            EventKind::Create | EventKind::Update => {
                live.insert(entry.key, Live { mod_revision, create_revision, expires });
            }
            EventKind::Delete => {
                live.remove(&entry.key);
            }
        }
    })?;
    Ok((meta.revision, live))
}

/// Creates a store in `directory` from the snapshot at `path`. Keys keep their revisions. The store's own revision is
/// the snapshot's plus `bump_revision`, and the store is compacted there.
///
/// The store gets its name when all of it is written and synced, so a crash leaves either no store or a complete one.
///
/// # Errors
/// When the snapshot is damaged, when there is a store already, or when the file system fails. The directory then has
/// no store, or the one it had before.
pub fn restore_embedded(
    directory: impl AsRef<Path>,
    path: &Path,
    bump_revision: u64,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Restored, RestoreError> {
    let directory = directory.as_ref();
    let (mut reader, summary) = snapshot::open_verified(path)?;
    let mut restored = Restored {
        revision: snapshot::raised(summary.header.revision, bump_revision)?,
        keys: 0,
        expired: 0,
        resumed: false,
        summary,
    };
    let total = restored.summary.keys;
    let now = now_milliseconds();
    create::filled(directory, |new, connection| {
        let failed = |source| RestoreError::from(database_error(new, source));
        // The file is synced as a whole before it gets its name.
        let pragmas = format!("PRAGMA synchronous = OFF; PRAGMA cache_size = -{};", FILL_CACHE_BYTES / 1024);
        connection.execute_batch(&format!("{pragmas} BEGIN;")).map_err(failed)?;
        let mut inserts = Inserts::new(connection).map_err(failed)?;
        let mut kept = Kept::default();
        while let Some(record) = reader.next_record()? {
            if record.expires != 0 && record.expires <= now {
                restored.expired += 1;
                continue;
            }
            kept.add(insert(&mut inserts, record, &mut restored.revision).map_err(failed)?);
            restored.keys += 1;
            if restored.keys.is_multiple_of(1000) {
                progress(restored.keys, total);
            }
        }
        drop(inserts);
        if reader.summary().as_ref() != Some(&restored.summary) {
            let source = io::Error::other("the file was changed while it was read");
            return Err(SnapshotError::Io { path: path.to_owned(), source }.into());
        }
        let meta = Meta { compacted: restored.revision, revision: restored.revision, kept };
        meta.write(connection).map_err(failed)?;
        connection.execute_batch("COMMIT").map_err(failed)
    })?;
    progress(total, total);
    Ok(restored)
}

/// Writes a record's rows. In this store a revision has one write, but in the snapshot's source it may have several
/// (a transaction of etcd): all but one of them become new writes, after `newest`. Returns the revision of the rows.
fn insert(
    inserts: &mut Inserts<'_>,
    record: SnapshotRecord,
    newest: &mut Revision,
) -> rusqlite::Result<Revision> {
    let SnapshotRecord { key, value, create_revision, mod_revision, expires } = record;
    let kind = if create_revision == mod_revision { EventKind::Create } else { EventKind::Update };
    let mut entry =
        Entry { revision: mod_revision, kind, key, create_revision, previous: Revision(0), expires };
    let value = StoredValue::new(Some(&value));
    match inserts.insert(&entry, value.checksum(entry.revision), value.bytes()) {
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => {
            *newest = Revision(newest.0 + 1);
            entry.revision = *newest;
            entry.kind = EventKind::Update;
            inserts.insert(&entry, value.checksum(entry.revision), value.bytes())?;
        }
        inserted => inserted?,
    }
    Ok(entry.revision)
}
