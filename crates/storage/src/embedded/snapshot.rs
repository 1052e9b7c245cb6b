//! Saving a store that a server may have open, and making a store out of a snapshot.
//!
//! A save reads the database from beside the server, in one read transaction: the log keeps everything that the
//! transaction sees until it ends, whatever is written and compacted meanwhile. It begins when the database has what the
//! journal had. The server is not asked, and its writers do not wait; only its log grows for as long as the save takes.
//!
//! A restored store has the snapshot's keys with their revisions and nothing of the history before: it is compacted at
//! its own revision, so whoever resumes from there goes on, and whoever is behind is told so.

use super::{
    EmbeddedOptions,
    file::{self, OpenError},
    journal,
    meta::{Kept, Meta},
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

/// So long a server may take to bring into the database what it has acknowledged.
const PATIENCE: Duration = Duration::from_secs(10);
/// So many bytes of pages are kept while a store is filled.
const FILL_CACHE_BYTES: u64 = 16 << 20;

/// An embedded store as it is at one moment, to be saved. Whether a server has it open makes no difference.
pub struct EmbeddedSnapshot {
    path: PathBuf,
    /// In a read transaction.
    connection: Connection,
    revision: Revision,
    live: BTreeMap<Key, Live>,
}

/// The newest write of a key that exists.
#[derive(Debug, Clone, Copy)]
struct Live {
    mod_revision: Revision,
    create_revision: Revision,
    expires: u64,
}

impl EmbeddedSnapshot {
    /// Looks at the store in `directory` as it is now.
    ///
    /// # Errors
    /// When there is no store, when it is of an unknown format or damaged, when the file system says no.
    pub fn open(directory: impl AsRef<Path>) -> Result<EmbeddedSnapshot, OpenError> {
        let directory = directory.as_ref();
        let path = file::database_path(directory);
        let options = EmbeddedOptions::default();
        file::check_unused(directory, &options)?;
        let failed = |source| file::database_error(&path, source);
        let acknowledged = journal::newest(directory)?;
        let connection = file::reader(directory, options.cache_bytes).map_err(failed)?;
        wait_for(&connection, acknowledged).map_err(failed)?;
        let version = file::check_format(&path, &connection)?;
        let (revision, live) = index(&path, &connection, version)?;
        if revision < acknowledged {
            let behind = format!(
                "the server has not brought the database up to revision {acknowledged}, it is at {revision}"
            );
            return Err(OpenError::Io { path, source: io::Error::new(io::ErrorKind::TimedOut, behind) });
        }
        Ok(EmbeddedSnapshot { path, connection, revision, live })
    }

    /// The store's revision, which the snapshot is as of.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// How many keys are not under `prefix`, and so not in a snapshot of it.
    pub fn keys_outside(&self, prefix: &str) -> usize {
        self.live.keys().filter(|key| !key.as_str().starts_with(prefix)).count()
    }

    /// Saves all keys under `prefix` into a new file at `path`. `progress` is told how many keys have been written.
    ///
    /// # Errors
    /// When a value is damaged, when there are no keys, when the file cannot be written. There is no file then.
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

/// Begins a transaction that sees everything up to a revision, which a server is about to bring into the database; or,
/// when it does not, one that sees what there is.
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

/// The keys that exist, and the newest revision.
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

/// Makes a store in `directory` out of the snapshot at `path`. Keys keep their revisions. The store's own revision is
/// the snapshot's and `bump_revision` more, and it is compacted there.
///
/// Until all is written and synced, the store has no name, so a crash leaves none or all of it.
///
/// # Errors
/// When the snapshot is damaged, when there is a store already, when the file system says no. There is no store then,
/// or still the one that was there.
pub fn restore_embedded(
    directory: impl AsRef<Path>,
    path: &Path,
    bump_revision: u64,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Restored, RestoreError> {
    let directory = directory.as_ref();
    let (mut reader, summary) = snapshot::open_verified(path)?;
    let mut restored = Restored {
        revision: Revision(summary.header.revision.0.saturating_add(bump_revision)),
        keys: 0,
        expired: 0,
        resumed: false,
        summary,
    };
    let total = restored.summary.keys;
    let now = now_milliseconds();
    file::create_filled(directory, |new, connection| {
        let failed = |source| RestoreError::from(file::database_error(new, source));
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

/// Writes a record's rows. A revision has one write here, but may have had several where the snapshot is from (a
/// transaction of etcd): all but one of them become new writes, behind `newest`. Returns the revision of the rows.
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
