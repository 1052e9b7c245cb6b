//! The apply thread: the only one that writes to the database.
//!
//! It brings the database up to what the commit thread has left in the backlog, many writes to a transaction that nobody
//! syncs: the journal has them. Then it does a piece of the housekeeping: deletes rows that were compacted away, gives
//! free pages back, copies SQLite's log into the database.
//!
//! When there is no room for a transaction, the backlog is stuck: what is in it can be read, and stays in the journal, but
//! nothing more may be written before it fits. Compacting what the database has can make that room.

use super::{
    EmbeddedOptions, Shared,
    batch::Failure,
    copier::Copier,
    file,
    handover::{Order, Turn},
    inbox::Reply,
    meta::Meta,
    row::{self, Inserts},
};
use crate::{Revision, StorageError};
use rusqlite::Connection;
use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

/// So many compacted rows are deleted in a transaction.
const GARBAGE_ROWS: usize = 256;
/// So many free pages are given back at a time.
const VACUUM_PAGES: u64 = 64;
/// A transaction writes about so many pages beside those that its values fill.
const PAGES_BESIDE: u64 = 4;
/// How much the thread gives way to others, between 0 and 19.
#[cfg(target_os = "linux")]
const NICE: i32 = 10;

pub(super) struct Applier {
    shared: Arc<Shared>,
    connection: Connection,
    /// What the table of that name says.
    meta: Meta,
    /// Revisions that are compacted away but whose rows are still there, descending: rows go oldest first, so that a
    /// tombstone outlives what it deleted, and a restart in between sees no key rise from the dead.
    garbage: Vec<Revision>,
    /// Who waits for the rows to go.
    compactions: Vec<Reply>,
    /// So many free pages are never given back.
    spare_pages: u64,
    /// Rows went, and nobody has looked since whether there are too many free pages.
    vacuuming: bool,
    copier: Copier,
}

impl Applier {
    pub(super) fn new(
        shared: Arc<Shared>,
        connection: Connection,
        meta: Meta,
        garbage: Vec<Revision>,
        options: &EmbeddedOptions,
    ) -> Applier {
        Applier {
            shared,
            connection,
            meta,
            garbage: descending(garbage),
            compactions: Vec::new(),
            spare_pages: options.spare_bytes / u64::from(row::PAGE_SIZE),
            vacuuming: true,
            copier: Copier::new(options.log_bytes),
        }
    }

    /// Until it is told to close; then the database has everything, unless an error is returned.
    pub(super) fn run(mut self) -> Result<(), StorageError> {
        let ending = Ending(Arc::clone(&self.shared));
        give_way();
        loop {
            let Turn { orders, due, closing } = self.shared.handover.take(self.patience());
            if due {
                // Those who write next are told.
                let _ = self.apply_all();
            }
            for order in orders {
                self.obey(order);
            }
            self.collect_garbage();
            self.vacuum();
            self.copy_log();
            if closing {
                let closed = self.close();
                drop(ending);
                return closed;
            }
        }
    }

    /// How long nothing is to be done of one's own accord.
    fn patience(&self) -> Option<Duration> {
        (!self.garbage.is_empty() || self.vacuuming).then_some(Duration::ZERO)
    }

    fn obey(&mut self, order: Order) {
        let (reply, result) = match order {
            Order::Apply { until, reply } => (reply, self.apply(until)),
            Order::Probe { reply } => (reply, self.probe()),
            Order::Compact { revision, reply } => match self.compact(revision) {
                // Answered when the rows are gone.
                Ok(()) => return self.compactions.push(reply),
                Err(error) => (reply, Err(error)),
            },
        };
        // Who asked may have gone away.
        let _ = reply.send(result);
    }

    fn poisoned(&self) -> Result<(), StorageError> {
        self.shared.poisoned().map_or(Ok(()), Err)
    }

    /// Brings the database up to what has been written until now.
    fn apply_all(&mut self) -> Result<(), StorageError> {
        let written = self.shared.state.read().revision;
        self.apply(written)
    }

    /// Brings the database up to a revision.
    fn apply(&mut self, until: Revision) -> Result<(), StorageError> {
        loop {
            self.poisoned()?;
            let batches = {
                let state = self.shared.state.read();
                if state.backlog.applied() >= until {
                    return Ok(());
                }
                state.backlog.oldest(self.shared.transaction_bytes)
            };
            let inserted = transact(&self.connection, |connection| {
                let mut inserts = Inserts::new(connection)?;
                batches.iter().try_for_each(|batch| batch.insert(&mut inserts))
            });
            if let Err(error) = inserted {
                let error = self.failed(error);
                self.shared.state.write().backlog.set_stuck(true);
                return Err(error);
            }
            if let Some(newest) = batches.last() {
                let mut state = self.shared.state.write();
                state.backlog.forget(newest.revision);
                state.backlog.set_stuck(false);
            }
            let bytes: u64 = batches.iter().map(|batch| batch.bytes).sum();
            // What it held goes outside of the lock.
            drop(batches);
            self.written(bytes);
            self.copy_log();
        }
    }

    /// A transaction has written about so much.
    fn written(&mut self, bytes: u64) {
        self.copier.written(bytes + PAGES_BESIDE * u64::from(row::PAGE_SIZE));
    }

    /// Takes note of a failed transaction, and returns it as the callers are told.
    fn failed(&mut self, failure: impl Into<Failure>) -> StorageError {
        let failure = failure.into();
        let full = failure.is_disk_full();
        let error = StorageError::from(failure);
        let rolled_back = self.connection.is_autocommit() || execute(&self.connection, "ROLLBACK").is_ok();
        if full && rolled_back {
            tracing::error!(directory = %self.shared.directory.display(), "storage failed to write: {error}");
            self.shared.failures.lock().database = Some(error.clone());
            return error;
        }
        self.garbage.clear();
        let poison = self.shared.poison(&error);
        self.answer_compactions(&Err(poison.clone()));
        poison
    }

    /// Brings the database up to everything, writes something that changes nothing but needs space, and says how that
    /// went.
    fn probe(&mut self) -> Result<(), StorageError> {
        self.apply_all()?;
        let tried = transact(&self.connection, |connection| {
            // No write has revision 0.
            execute(
                connection,
                "INSERT INTO vals (revision, checksum, value) VALUES (0, 0, zeroblob(65536))",
            )?;
            execute(connection, "DELETE FROM vals WHERE revision = 0")
        });
        tried.map_err(|error| self.failed(error))?;
        self.shared.failures.lock().database = None;
        Ok(())
    }

    /// Compacts at a revision. The rows go afterwards.
    fn compact(&mut self, revision: Revision) -> Result<(), StorageError> {
        self.poisoned()?;
        let (current, compacted, applied) = {
            let state = self.shared.state.read();
            (state.revision, state.compacted, state.backlog.applied())
        };
        if revision > current {
            return Err(StorageError::FutureRevision { requested: revision, current });
        }
        if revision > applied
            && let Err(error) = self.apply(revision)
        {
            self.poisoned()?;
            // What the database has is compacted first, which may make room for the rest.
            let applied = self.shared.state.read().backlog.applied();
            if applied <= compacted {
                return Err(error);
            }
            self.compact_applied(applied)?;
            while !self.garbage.is_empty() {
                self.collect_garbage();
            }
            self.apply(revision)?;
        }
        if revision > self.meta.compacted { self.compact_applied(revision) } else { Ok(()) }
    }

    /// The compaction is decided when it is on the disk; the rows go afterwards, after a restart if need be. The newest
    /// revision is recorded too, since the row that tells it may go.
    fn compact_applied(&mut self, revision: Revision) -> Result<(), StorageError> {
        let applied = self.shared.state.read().backlog.applied();
        let meta = self.meta.compacted_at(revision, applied);
        let recorded = transact(&self.connection, |connection| meta.write(connection))
            .map_err(Failure::from)
            .and_then(|()| file::sync_log(&self.shared.directory).map_err(Failure::Sync));
        recorded.map_err(|error| self.failed(error))?;
        self.durable(applied);
        self.meta = meta;
        let mut state = self.shared.state.write();
        state.compacted = revision;
        self.garbage.extend(state.index.compact(revision));
        drop(state);
        self.garbage = descending(std::mem::take(&mut self.garbage));
        Ok(())
    }

    /// The journal need not keep what was written up to `revision`.
    fn durable(&self, revision: Revision) {
        self.shared.durable.fetch_max(revision.0, Ordering::AcqRel);
    }

    /// Deletes some of the rows that were compacted away.
    fn collect_garbage(&mut self) {
        if let Err(error) = self.poisoned() {
            // The rows are found again at the next start.
            self.garbage.clear();
            self.answer_compactions(&Err(error));
        }
        if !self.garbage.is_empty() {
            let some = self.garbage.split_off(self.garbage.len().saturating_sub(GARBAGE_ROWS));
            if let Err(error) = self.delete_rows(&some) {
                let error = self.failed(error);
                // The rows are found again at the next start.
                self.garbage.clear();
                self.answer_compactions(&Err(error));
            }
        }
        if self.garbage.is_empty() {
            self.answer_compactions(&Ok(()));
        }
    }

    fn answer_compactions(&mut self, result: &Result<(), StorageError>) {
        for reply in self.compactions.drain(..) {
            // Who asked may have gone away.
            let _ = reply.send(result.clone());
        }
    }

    fn delete_rows(&mut self, descending: &[Revision]) -> rusqlite::Result<()> {
        let mut meta = self.meta;
        descending.iter().for_each(|revision| meta.kept.remove(*revision));
        transact(&self.connection, |connection| {
            meta.write(connection)?;
            // Runs of revisions go with one statement.
            for run in descending.chunk_by(|later, earlier| later.0 == earlier.0 + 1) {
                if let [last, .., first] | [first @ last] = run {
                    row::delete(connection, *first, *last)?;
                }
            }
            Ok(())
        })?;
        self.meta = meta;
        self.vacuuming = true;
        self.written(descending.len() as u64 * u64::from(row::PAGE_SIZE) / 2);
        Ok(())
    }

    /// Gives some free pages back to the file system when most of the database is free: after a burst, that is. What
    /// every compaction frees is used again soon, and moving pages is not for nothing.
    fn vacuum(&mut self) {
        if !self.vacuuming || !self.garbage.is_empty() {
            return;
        }
        if self.poisoned().is_err() {
            self.vacuuming = false;
            return;
        }
        match self.free_pages() {
            Ok((pages, free)) if free > self.spare_pages && free > pages / 2 => {
                if let Err(error) = give_back(&self.connection) {
                    self.vacuuming = false;
                    self.failed(error);
                }
                // Each of them moves another and changes what leads to that one.
                self.written(VACUUM_PAGES * 3 * u64::from(row::PAGE_SIZE));
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

    /// Syncs the log, and copies it into the database, when it is time.
    fn copy_log(&mut self) {
        if self.poisoned().is_err() {
            return;
        }
        let applied = self.shared.state.read().backlog.applied();
        match self.copier.go_on(&self.shared.directory, &self.connection) {
            Ok(true) => self.durable(applied),
            Ok(false) => {}
            Err(error) => {
                self.failed(error);
            }
        }
    }

    fn close(mut self) -> Result<(), StorageError> {
        let result = match self.poisoned() {
            // What it has was told before. It is as it is.
            Err(_) => Ok(()),
            Ok(()) => self.finish(),
        };
        // What is left of the rows goes after the next start.
        self.answer_compactions(&Ok(()));
        let closed = self.connection.close().map_err(|(_, error)| row::storage_error(error));
        result.and(closed)
    }

    /// Leaves a database that has everything.
    fn finish(&mut self) -> Result<(), StorageError> {
        self.apply_all()?;
        let synced = file::sync_log(&self.shared.directory).map_err(Failure::Sync);
        // Somebody who reads may hinder the copy.
        synced.and_then(|()| Ok(truncate_log(&self.connection)?)).map_err(|error| self.failed(error))
    }
}

/// Makes sure that nobody waits for a thread that is gone, however it went.
struct Ending(Arc<Shared>);

impl Drop for Ending {
    fn drop(&mut self) {
        let mut error = StorageError::Closed;
        if std::thread::panicking() {
            error = self.0.poison(&super::ended());
            self.0.hub.close(Some(&error));
        }
        for order in self.0.handover.end() {
            order.refuse(&error);
        }
    }
}

/// Lets the commit thread and the writers go first: they sleep and wake all the time, and a thread that only computes
/// and copies would make them wait for a processor each time. As far as the system can say so of a single thread.
fn give_way() {
    #[cfg(target_os = "linux")]
    // Where it may not, it is as it was.
    let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), NICE);
}

fn descending(mut revisions: Vec<Revision>) -> Vec<Revision> {
    revisions.sort_unstable_by(|a, b| b.cmp(a));
    revisions
}

/// Makes changes in a transaction. After an error that may still be open.
fn transact(
    connection: &Connection,
    change: impl FnOnce(&Connection) -> rusqlite::Result<()>,
) -> rusqlite::Result<()> {
    execute(connection, "BEGIN IMMEDIATE")?;
    change(connection)?;
    execute(connection, "COMMIT")
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
