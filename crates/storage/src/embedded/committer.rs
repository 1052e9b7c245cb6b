//! The commit thread: the only one that writes.
//!
//! A round takes all that waits and appends it to the journal as one batch; while another thread syncs that, it brings the
//! database up to it, in one transaction that nobody syncs. When both are done it publishes the events, answers the
//! writers, and then does a piece of the housekeeping: deletes rows that were compacted away, copies the log into the
//! database.
//!
//! Once a commit fails in a way that leaves unknown what is on the disk, the thread is poisoned: it refuses all writes
//! (a sync that failed must not be tried again, for the kernel may have dropped what it could not write) until the
//! process is restarted and reads what is there.

use super::{
    EmbeddedOptions, Shared,
    batch::{Batch, Failure, Outcome, Write, WriteKind, answer, milliseconds},
    copier::Copier,
    file::{self, Opened},
    inbox::{Command, Gathering, Reply, Taken},
    journal::Journal,
    meta::Meta,
    row,
    sync_thread::SyncThread,
    value::StoredValue,
};
use crate::{Key, Revision, StorageError};
use rusqlite::Connection;
use std::{
    collections::BTreeSet,
    fs::File,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

/// A transaction has at most so many writes, or bytes of values; what waits beyond that comes next.
const MAX_BATCH_WRITES: usize = 1024;
const MAX_BATCH_BYTES: usize = 16 << 20;
/// So many compacted rows are deleted between two commits.
const GARBAGE_ROWS: usize = 256;
/// So many free pages are given back between two commits.
const VACUUM_PAGES: u64 = 64;
/// So long at most until the clock is looked at again, which may have been set.
const CLOCK_CHECK: Duration = Duration::from_secs(60);
/// Writers who were answered together are waited for at most this part of the time that their writes took, and at most
/// this long.
const GATHERING_SHARE: u32 = 4;
const GATHERING_TIME: Duration = Duration::from_micros(500);
/// An expired key whose deletion failed is tried again after this.
const EXPIRY_RETRY: Duration = Duration::from_secs(10);

pub(super) type Expirations = BTreeSet<(u64, Key, Revision)>;

pub(super) struct Committer {
    shared: Arc<Shared>,
    connection: Connection,
    journal: Journal,
    syncs: SyncThread,
    /// Held until the connection is closed.
    lock: File,
    /// What the table of that name says.
    meta: Meta,
    expirations: Expirations,
    /// Revisions that are compacted away but whose rows are still there, descending: rows go oldest first, so that a
    /// tombstone outlives what it deleted, and a restart in between sees no key rise from the dead.
    garbage: Vec<Revision>,
    /// What else than writes was asked in this round.
    asked: Asked,
    /// Who waits for the rows to go.
    compactions: Vec<Reply>,
    /// So many free pages are never given back.
    spare_pages: u64,
    /// Rows went, and nobody has looked since whether there are too many free pages.
    vacuuming: bool,
    copier: Copier,
    poisoned: Option<StorageError>,
    /// How many writers were answered in this round.
    answered: usize,
}

/// Commands that come after the writes of a round.
#[derive(Default)]
struct Asked {
    compactions: Vec<(Revision, Reply)>,
    probes: Vec<Reply>,
}

impl Asked {
    /// Takes those among commands, and adds the writes to others.
    fn sort(&mut self, commands: Vec<Command>, writes: &mut Vec<Write>) {
        for command in commands {
            match command {
                Command::Write(write) => writes.push(write),
                Command::Compact { revision, reply } => self.compactions.push((revision, reply)),
                Command::Probe { reply } => self.probes.push(reply),
            }
        }
    }
}

impl Committer {
    pub(super) fn new(
        shared: Arc<Shared>,
        opened: Opened,
        syncs: SyncThread,
        options: &EmbeddedOptions,
    ) -> Committer {
        let Opened { lock, connection, journal, meta, expirations, garbage } = opened;
        let copier = Copier::new(Arc::clone(&shared), options.log_bytes);
        Committer {
            shared,
            connection,
            journal,
            syncs,
            lock,
            meta,
            expirations,
            garbage: descending(garbage),
            asked: Asked::default(),
            compactions: Vec::new(),
            spare_pages: options.spare_bytes / u64::from(row::PAGE_SIZE),
            vacuuming: true,
            copier,
            poisoned: None,
            answered: 0,
        }
    }

    pub(super) fn run(mut self) {
        let ending = Ending(Arc::clone(&self.shared));
        let mut gathering = None;
        loop {
            let Taken { commands, closing } = self.shared.inbox.take(self.patience(), gathering);
            let started = Instant::now();
            self.answered = 0;
            let mut writes = self.due();
            self.asked.sort(commands, &mut writes);
            while !writes.is_empty() {
                let rest = writes.split_off(batch_length(&writes));
                let batch = std::mem::replace(&mut writes, rest);
                self.commit(batch, gathering);
            }
            for (revision, reply) in std::mem::take(&mut self.asked.compactions) {
                self.compact(revision, reply);
            }
            if !self.asked.probes.is_empty() {
                self.probe();
            }
            // One writer is nobody to wait for.
            gathering = (self.answered > 1).then(|| {
                let ended = Instant::now();
                let wait = (ended.saturating_duration_since(started) / GATHERING_SHARE).min(GATHERING_TIME);
                Gathering { expected: self.answered, until: ended + wait }
            });
            self.collect_garbage();
            self.vacuum();
            self.copy_log();
            if closing {
                return self.close(ending);
            }
        }
    }

    /// How long nothing is to be done of one's own accord.
    fn patience(&self) -> Option<Duration> {
        if self.poisoned.is_some() {
            return None;
        }
        if !self.garbage.is_empty() || self.vacuuming {
            return Some(Duration::ZERO);
        }
        let (at, ..) = self.expirations.first()?;
        let left = at.saturating_sub(milliseconds(SystemTime::now()));
        Some(Duration::from_millis(left).min(CLOCK_CHECK))
    }

    /// Deletes for the keys whose time has come.
    fn due(&mut self) -> Vec<Write> {
        let mut writes = Vec::new();
        if self.expirations.is_empty() || self.poisoned.is_some() {
            return writes;
        }
        let now = milliseconds(SystemTime::now());
        let state = self.shared.state.read();
        while self.expirations.first().is_some_and(|(at, ..)| *at <= now) && writes.len() < MAX_BATCH_WRITES {
            let Some((_, key, expected)) = self.expirations.pop_first() else { break };
            // A later write of the key has its own time, or none.
            if state.index.current(&key).is_some_and(|version| version.mod_revision == expected) {
                let kind = WriteKind::Delete { expected };
                writes.push(Write { key, kind, stored: StoredValue::empty(), reply: None, runtime: None });
            }
        }
        writes
    }

    /// Commits writes, and with them those of writers who are a little late.
    fn commit(&mut self, mut writes: Vec<Write>, gathering: Option<Gathering>) {
        if let Some(error) = self.poisoned.clone() {
            return refuse(writes, &error);
        }
        match self.transact(&mut writes, gathering) {
            Ok(outcomes) => {
                self.answered += writes.len();
                answer(writes, outcomes);
            }
            Err(error) => {
                let error = self.failed(error);
                let again = milliseconds(SystemTime::now() + EXPIRY_RETRY);
                for write in &writes {
                    if let (None, WriteKind::Delete { expected }) = (&write.reply, &write.kind) {
                        self.expirations.insert((again, write.key.clone(), *expected));
                    }
                }
                refuse(writes, &error);
            }
        }
    }

    /// Writes, syncs and publishes.
    fn transact(
        &mut self,
        writes: &mut Vec<Write>,
        gathering: Option<Gathering>,
    ) -> Result<Vec<Outcome>, Failure> {
        let shared = Arc::clone(&self.shared);
        let before = shared.state.read().revision;
        let mut batch = Batch::new(before);
        let mut outcomes = Vec::with_capacity(writes.len());
        self.decide(&mut batch, writes, &mut outcomes);
        let mut room = Room::beside(writes);
        let late = shared.inbox.take_late(writes.len(), gathering, |command| match command {
            Command::Write(write) => room.fits(write),
            Command::Compact { .. } | Command::Probe { .. } => true,
        });
        self.asked.sort(late, writes);
        self.decide(&mut batch, writes, &mut outcomes);
        if batch.revision == before {
            return Ok(outcomes);
        }
        let file = self.journal.append(Revision(before.0 + 1)).map_err(Failure::Journal)?;
        let syncing = self.syncs.sync(file);
        let inserted = batch.insert(&self.connection, writes).map_err(Failure::Database);
        syncing.wait().map_err(Failure::Sync)?;
        if let Err(failure) = inserted {
            if failure.is_disk_full() {
                self.journal.take_back().map_err(Failure::Sync)?;
            }
            return Err(failure);
        }

        let mut state = shared.state.write();
        shared.hub.publish(&batch.events, batch.revision);
        for (key, version) in &batch.versions {
            state.index.insert(key, *version);
        }
        state.revision = batch.revision;
        drop(state);
        *shared.failure.lock() = None;
        self.expirations.extend(batch.expirations);
        // A row of an index page and a value page, each of which the log has whole.
        self.copier.written(batch.bytes + (u64::from(row::PAGE_SIZE) * 2));
        Ok(outcomes)
    }

    /// Decides those of the writes that have no outcome yet.
    fn decide(&mut self, batch: &mut Batch, writes: &[Write], outcomes: &mut Vec<Outcome>) {
        for (number, write) in writes.iter().enumerate().skip(outcomes.len()) {
            let store = (&*self.shared, &self.connection);
            outcomes.push(batch.decide(store, &mut self.journal, number, write));
        }
    }

    /// Takes note of a failed transaction, and returns it as the callers are told.
    fn failed(&mut self, failure: impl Into<Failure>) -> StorageError {
        let failure = failure.into();
        let full = failure.is_disk_full();
        let error = StorageError::from(failure);
        let rolled_back = self.connection.is_autocommit() || execute(&self.connection, "ROLLBACK").is_ok();
        if full && rolled_back {
            tracing::error!(directory = %self.shared.directory.display(), "storage failed to write: {error}");
            *self.shared.failure.lock() = Some(error.clone());
            return error;
        }
        let poison = StorageError::Poisoned(format!("{}: {error}", self.shared.directory.display()));
        self.poison(poison)
    }

    fn poison(&mut self, poison: StorageError) -> StorageError {
        tracing::error!("{poison}");
        *self.shared.failure.lock() = Some(poison.clone());
        self.poisoned = Some(poison.clone());
        for command in self.shared.inbox.poison(&poison) {
            match command {
                Command::Write(write) => write.answer(Err(poison.clone().into())),
                Command::Compact { reply, .. } | Command::Probe { reply } => {
                    let _ = reply.send(Err(poison.clone()));
                }
            }
        }
        self.garbage.clear();
        for reply in self.compactions.drain(..) {
            let _ = reply.send(Err(poison.clone()));
        }
        poison
    }

    fn compact(&mut self, revision: Revision, reply: Reply) {
        let (current, compacted) = {
            let state = self.shared.state.read();
            (state.revision, state.compacted)
        };
        if let Some(error) = &self.poisoned {
            let _ = reply.send(Err(error.clone()));
        } else if revision > current {
            let _ = reply.send(Err(StorageError::FutureRevision { requested: revision, current }));
        } else if revision <= compacted {
            let _ = reply.send(Ok(()));
        } else if let Err(error) = self.record(self.meta.compacted_at(revision, current)) {
            let error = self.failed(error);
            let _ = reply.send(Err(error));
        } else {
            let mut state = self.shared.state.write();
            state.compacted = revision;
            self.garbage.extend(state.index.compact(revision));
            drop(state);
            self.garbage = descending(std::mem::take(&mut self.garbage));
            self.compactions.push(reply);
        }
    }

    /// Writes something that changes nothing but needs space, and says how that went.
    fn probe(&mut self) {
        let result = match &self.poisoned {
            Some(error) => Err(error.clone()),
            None => self.try_space().map_err(|error| self.failed(error)),
        };
        if result.is_ok() {
            *self.shared.failure.lock() = None;
        }
        for reply in self.asked.probes.drain(..) {
            let _ = reply.send(result.clone());
        }
    }

    fn try_space(&mut self) -> Result<(), Failure> {
        self.journal.probe().map_err(Failure::Journal)?;
        execute(&self.connection, "BEGIN IMMEDIATE")?;
        // No write has revision 0.
        execute(
            &self.connection,
            "INSERT INTO vals (revision, checksum, value) VALUES (0, 0, zeroblob(65536))",
        )?;
        execute(&self.connection, "DELETE FROM vals WHERE revision = 0")?;
        Ok(execute(&self.connection, "COMMIT")?)
    }

    /// The compaction is decided when this is on the disk; the rows go afterwards, after a restart if need be. The
    /// current revision is recorded too, since the row that tells it may go.
    fn record(&mut self, meta: Meta) -> Result<(), Failure> {
        execute(&self.connection, "BEGIN IMMEDIATE")?;
        meta.write(&self.connection)?;
        execute(&self.connection, "COMMIT")?;
        file::sync_log(&self.shared.directory).map_err(Failure::Sync)?;
        self.meta = meta;
        Ok(())
    }

    /// Deletes some of the rows that were compacted away.
    fn collect_garbage(&mut self) {
        if !self.garbage.is_empty() {
            let some = self.garbage.split_off(self.garbage.len().saturating_sub(GARBAGE_ROWS));
            if let Err(error) = self.delete_rows(&some) {
                let error = self.failed(error);
                // The rows are found again at the next start.
                self.garbage.clear();
                for reply in self.compactions.drain(..) {
                    let _ = reply.send(Err(error.clone()));
                }
            }
        }
        if self.garbage.is_empty() {
            for reply in self.compactions.drain(..) {
                let _ = reply.send(Ok(()));
            }
        }
    }

    fn delete_rows(&mut self, descending: &[Revision]) -> rusqlite::Result<()> {
        let mut meta = self.meta;
        descending.iter().for_each(|revision| meta.kept.remove(*revision));
        execute(&self.connection, "BEGIN IMMEDIATE")?;
        meta.write(&self.connection)?;
        // Runs of revisions go with one statement.
        for run in descending.chunk_by(|later, earlier| later.0 == earlier.0 + 1) {
            if let [last, .., first] | [first @ last] = run {
                row::delete(&self.connection, *first, *last)?;
            }
        }
        execute(&self.connection, "COMMIT")?;
        self.meta = meta;
        self.vacuuming = true;
        self.copier.written(descending.len() as u64 * u64::from(row::PAGE_SIZE) / 2);
        Ok(())
    }

    /// Gives some free pages back to the file system when most of the database is free: after a burst, that is. What
    /// every compaction frees is used again soon, and moving pages is not for nothing.
    fn vacuum(&mut self) {
        if !self.vacuuming || !self.garbage.is_empty() || self.poisoned.is_some() {
            return;
        }
        match self.free_pages() {
            Ok((pages, free)) if free > self.spare_pages && free > pages / 2 => {
                if let Err(error) = give_back(&self.connection) {
                    self.vacuuming = false;
                    self.failed(error);
                }
                // Each of them moves another and changes what leads to that one.
                self.copier.written(VACUUM_PAGES * 3 * u64::from(row::PAGE_SIZE));
            }
            Ok(_) => self.vacuuming = false,
            Err(error) => {
                self.vacuuming = false;
                self.failed(error);
            }
        }
    }

    /// How many pages the database has, and how many of them nobody uses. None are free in a store that was made when
    /// they were never given back.
    fn free_pages(&self) -> rusqlite::Result<(u64, u64)> {
        let pragma = |statement: &str| {
            let mut statement = self.connection.prepare_cached(statement)?;
            statement.query_row((), |row| row.get::<_, i64>(0)).map(i64::cast_unsigned)
        };
        if pragma("PRAGMA auto_vacuum")? == 0 {
            return Ok((0, 0));
        }
        Ok((pragma("PRAGMA page_count")?, pragma("PRAGMA freelist_count")?))
    }

    /// Copies the log into the database, so that it can be used again from its start.
    fn copy_log(&mut self) {
        if self.poisoned.is_none()
            && let Err(error) = self.copier.copy(&self.connection, &mut self.journal)
        {
            self.failed(error);
        }
    }

    fn close(mut self, ending: Ending) {
        self.shared.readers.close();
        let mut result = Ok(());
        let copied = self.copier.end(&mut self.journal);
        if self.poisoned.is_none()
            && let Err(error) = copied.and_then(|()| self.finish())
        {
            result = Err(self.failed(error));
        }
        for reply in self.compactions.drain(..) {
            // What is left of the rows goes after the next start.
            let _ = reply.send(Ok(()));
        }
        if let Err((_, error)) = self.connection.close() {
            result = result.and(Err(row::storage_error(error)));
        }
        drop(self.lock);
        ending.end(&result);
    }

    /// Leaves a database that has everything, and no journal: it can be moved and copied as one file.
    fn finish(&mut self) -> Result<(), Failure> {
        // Somebody who reads may hinder the copy.
        file::sync_log(&self.shared.directory).map_err(Failure::Sync)?;
        truncate_log(&self.connection)?;
        self.journal.remove().map_err(Failure::Journal)
    }
}

/// Makes sure that nobody waits for a thread that is gone, however it went.
struct Ending(Arc<Shared>);

impl Ending {
    fn end(&self, result: &Result<(), StorageError>) {
        self.0.hub.close(None);
        for reply in self.0.inbox.end() {
            let _ = reply.send(result.clone());
        }
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let error = super::ended();
            *self.0.failure.lock() = Some(error.clone());
            drop(self.0.inbox.poison(&error));
            self.0.hub.close(Some(&error));
            self.end(&Err(error));
        }
    }
}

fn refuse(writes: Vec<Write>, error: &StorageError) {
    for write in writes {
        write.answer(Err(error.clone().into()));
    }
}

/// How many of the writes make a transaction.
fn batch_length(writes: &[Write]) -> usize {
    let mut room = Room { writes: MAX_BATCH_WRITES, bytes: MAX_BATCH_BYTES };
    writes.iter().take_while(|write| room.fits(write)).count().max(1)
}

/// What a transaction still has room for.
struct Room {
    writes: usize,
    bytes: usize,
}

impl Room {
    fn beside(writes: &[Write]) -> Room {
        let bytes = writes.iter().map(Write::size).sum();
        Room {
            writes: MAX_BATCH_WRITES.saturating_sub(writes.len()),
            bytes: MAX_BATCH_BYTES.saturating_sub(bytes),
        }
    }

    /// Whether another write fits, which then takes its room.
    fn fits(&mut self, write: &Write) -> bool {
        let (Some(writes), Some(bytes)) = (self.writes.checked_sub(1), self.bytes.checked_sub(write.size()))
        else {
            return false;
        };
        (self.writes, self.bytes) = (writes, bytes);
        true
    }
}

fn descending(mut revisions: Vec<Revision>) -> Vec<Revision> {
    revisions.sort_unstable_by(|a, b| b.cmp(a));
    revisions
}

fn execute(connection: &Connection, statement: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(statement)?.execute(()).map(drop)
}

fn give_back(connection: &Connection) -> rusqlite::Result<()> {
    let mut statement = connection.prepare_cached(&format!("PRAGMA incremental_vacuum({VACUUM_PAGES})"))?;
    let mut rows = statement.query(())?;
    // It frees a page a step.
    while rows.next()?.is_some() {}
    Ok(())
}

/// Copies all of the log, and makes it empty if nobody reads.
fn truncate_log(connection: &Connection) -> rusqlite::Result<()> {
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |_| Ok(()))
}
