//! The apply thread: the only thread that writes to the database.
//!
//! It applies the backlog of the commit thread to the database, many writes per transaction and without a sync: the
//! journal has them. Then it does some maintenance: deletes compacted rows, returns free pages to the file system,
//! checkpoints SQLite's WAL.
//!
//! When there is no room for a transaction, the backlog is stuck: its writes are readable and stay in the journal,
//! but further writes are refused until it fits. Compacting the database can make that room.

use super::{
    checkpointer::Checkpointer,
    damage::storage_error,
    failures::Failure,
    handover::{Order, Turn},
    inbox::Reply,
    meta::Meta,
    options::EmbeddedOptions,
    paths,
    row::{self, Inserts},
    schema::PAGE_SIZE,
    shared::{Shared, ended},
};
use crate::{Revision, StorageError, key_index::COMPACTED_KEYS};
use parking_lot::RwLockWriteGuard;
use rusqlite::Connection;
use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

/// The number of compacted rows deleted per transaction.
const GARBAGE_ROWS: usize = 256;
/// The number of free pages returned to the file system at a time.
const VACUUM_PAGES: u64 = 64;
/// The number of pages that a transaction writes besides the pages its values fill, approximately.
const PAGES_BESIDE: u64 = 4;
/// The scheduling niceness of the thread, between 0 and 19.
#[cfg(target_os = "linux")]
const NICE: i32 = 10;

pub(super) struct Applier {
    shared: Arc<Shared>,
    connection: Connection,
    /// The contents of the table `meta`.
    meta: Meta,
    /// Compacted revisions whose rows are not deleted yet, descending: rows are deleted oldest first, so that a
    /// tombstone is deleted after the writes it deletes, and no key reappears after a restart in between.
    garbage: Vec<Revision>,
    /// Compacted revisions whose rows could not be deleted on a full disk. They are garbage again when there is room, and
    /// at the latest with the next compaction.
    postponed: Vec<Revision>,
    /// The callers that wait until the rows are deleted.
    compactions: Vec<Reply>,
    /// The number of free pages that are never returned to the file system.
    spare_pages: u64,
    /// Rows were deleted, and the number of free pages has not been checked since.
    vacuuming: bool,
    checkpointer: Checkpointer,
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
            postponed: Vec::new(),
            compactions: Vec::new(),
            spare_pages: options.spare_bytes / u64::from(PAGE_SIZE),
            vacuuming: true,
            checkpointer: Checkpointer::new(options.wal_bytes),
        }
    }

    /// Runs until an order to close; then the database has all writes, unless an error is returned.
    pub(super) fn run(mut self) -> Result<(), StorageError> {
        let ending = Ending(Arc::clone(&self.shared));
        give_way();
        loop {
            let Turn { orders, due, closing } = self.shared.handover.take(self.patience());
            if due {
                // Later writers get the error from `failures`.
                let _ = self.apply_all();
            }
            for order in orders {
                self.obey(order);
            }
            self.collect_garbage();
            self.vacuum();
            self.checkpoint();
            if closing {
                let closed = self.close();
                drop(ending);
                return closed;
            }
        }
    }

    /// The longest wait for orders; zero while maintenance is pending.
    fn patience(&self) -> Option<Duration> {
        (!self.garbage.is_empty() || self.vacuuming).then_some(Duration::ZERO)
    }

    fn obey(&mut self, order: Order) {
        let (reply, result) = match order {
            Order::Apply { until, reply } => (reply, self.apply(until)),
            Order::Probe { reply } => (reply, self.probe()),
            Order::Compact { revision, reply } => match self.compact(revision) {
                // The reply is sent when the rows are deleted.
                Ok(()) => return self.compactions.push(reply),
                Err(error) => (reply, Err(error)),
            },
        };
        // The caller may have been dropped.
        let _ = reply.send(result);
    }

    fn poisoned(&self) -> Result<(), StorageError> {
        self.shared.poisoned().map_or(Ok(()), Err)
    }

    /// Applies all writes so far to the database.
    fn apply_all(&mut self) -> Result<(), StorageError> {
        let written = self.shared.state.read().revision;
        self.apply(written)
    }

    /// Applies the writes up to a revision to the database.
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
            // Dropped outside the lock.
            drop(batches);
            self.written(bytes);
            self.checkpoint();
        }
    }

    /// Accounts for the bytes that a transaction wrote, approximately.
    fn written(&mut self, bytes: u64) {
        self.checkpointer.written(bytes + PAGES_BESIDE * u64::from(PAGE_SIZE));
    }

    /// Records a failed transaction, and returns the error for the callers.
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

    /// Applies all writes, then makes a change that needs space and undoes it. Returns whether both succeeded.
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
        self.take_up_postponed();
        Ok(())
    }

    /// Rows that could not be deleted are garbage again: before later ones, for the oldest are deleted first.
    fn take_up_postponed(&mut self) {
        let mut garbage = std::mem::take(&mut self.garbage);
        garbage.append(&mut self.postponed);
        self.garbage = descending(garbage);
    }

    /// Compacts at a revision. The rows are deleted afterwards.
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
            // The applied part is compacted first, which may make room for the rest.
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

    /// A compaction takes effect when it is synced to the disk; the rows are deleted afterwards, after a restart if
    /// necessary. The latest revision is recorded too, because its row may be deleted.
    fn compact_applied(&mut self, revision: Revision) -> Result<(), StorageError> {
        let applied = self.shared.state.read().backlog.applied();
        let meta = self.meta.compacted_at(revision, applied);
        let recorded = transact(&self.connection, |connection| meta.write(connection))
            .map_err(Failure::from)
            .and_then(|()| paths::sync_wal(&self.shared.directory).map_err(Failure::Sync));
        recorded.map_err(|error| self.failed(error))?;
        self.durable(applied);
        self.meta = meta;
        self.compact_index(revision);
        self.take_up_postponed();
        Ok(())
    }

    /// Compacts the index slice by slice, and adds the revisions whose rows are to be deleted to `garbage`.
    fn compact_index(&mut self, revision: Revision) {
        let mut forgotten = Vec::new();
        let mut start = None;
        loop {
            let mut state = self.shared.state.write();
            // From the first slice on, reads before the compaction are refused: it is no matter that the index still has
            // versions that only they would see.
            state.compacted = revision;
            start = state.index.compact_slice(revision, start.as_ref(), COMPACTED_KEYS, &mut forgotten);
            // Writers and readers that wait for the lock get it before the next slice.
            RwLockWriteGuard::unlock_fair(state);
            self.garbage.append(&mut forgotten);
            if start.is_none() {
                return;
            }
        }
    }

    /// The journal may drop the writes up to `revision`.
    fn durable(&self, revision: Revision) {
        self.shared.durable.fetch_max(revision.0, Ordering::AcqRel);
    }

    /// Deletes some of the compacted rows.
    fn collect_garbage(&mut self) {
        if let Err(error) = self.poisoned() {
            // The next start finds the rows again.
            self.garbage.clear();
            self.answer_compactions(&Err(error));
        }
        if !self.garbage.is_empty() {
            let some = self.garbage.split_off(self.garbage.len().saturating_sub(GARBAGE_ROWS));
            if let Err(error) = self.delete_rows(&some) {
                let error = self.failed(error);
                self.postponed.extend(some);
                self.postponed.append(&mut self.garbage);
                self.answer_compactions(&Err(error));
            }
        }
        if self.garbage.is_empty() {
            self.answer_compactions(&Ok(()));
        }
    }

    fn answer_compactions(&mut self, result: &Result<(), StorageError>) {
        for reply in self.compactions.drain(..) {
            // The caller may have been dropped.
            let _ = reply.send(result.clone());
        }
    }

    fn delete_rows(&mut self, descending: &[Revision]) -> rusqlite::Result<()> {
        let mut meta = self.meta;
        descending.iter().for_each(|revision| meta.kept.remove(*revision));
        transact(&self.connection, |connection| {
            meta.write(connection)?;
            // One statement deletes a run of consecutive revisions.
            for run in descending.chunk_by(|later, earlier| later.0 == earlier.0 + 1) {
                if let [last, .., first] | [first @ last] = run {
                    row::delete(connection, *first, *last)?;
                }
            }
            Ok(())
        })?;
        self.meta = meta;
        self.vacuuming = true;
        self.written(descending.len() as u64 * u64::from(PAGE_SIZE) / 2);
        Ok(())
    }

    /// Returns some free pages to the file system when most of the database is free, as after a burst. Pages freed by
    /// an ordinary compaction are soon reused, and moving pages has a cost.
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
                // Freeing a page moves another one and changes the page that refers to it.
                self.written(VACUUM_PAGES * 3 * u64::from(PAGE_SIZE));
            }
            Ok(_) => self.vacuuming = false,
            Err(error) => {
                self.vacuuming = false;
                self.failed(error);
            }
        }
    }

    /// The number of pages of the database, and the number of free ones. Zero for a store created without incremental
    /// vacuum.
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

    /// Syncs and checkpoints the WAL when it is due.
    fn checkpoint(&mut self) {
        if self.poisoned().is_err() {
            return;
        }
        let applied = self.shared.state.read().backlog.applied();
        match self.checkpointer.proceed(&self.shared.directory, &self.connection) {
            Ok(true) => self.durable(applied),
            Ok(false) => {}
            Err(error) => {
                self.failed(error);
            }
        }
    }

    fn close(mut self) -> Result<(), StorageError> {
        let result = match self.poisoned() {
            // The failure was reported before; the database is left as it is.
            Err(_) => Ok(()),
            Ok(()) => self.finish(),
        };
        // The remaining rows are deleted after the next start.
        self.answer_compactions(&Ok(()));
        let closed = self.connection.close().map_err(|(_, error)| storage_error(error));
        result.and(closed)
    }

    /// Applies all writes and checkpoints the WAL, so that the database is complete.
    fn finish(&mut self) -> Result<(), StorageError> {
        self.apply_all()?;
        let synced = paths::sync_wal(&self.shared.directory).map_err(Failure::Sync);
        // An open read transaction may prevent the checkpoint.
        synced.and_then(|()| Ok(truncate_wal(&self.connection)?)).map_err(|error| self.failed(error))
    }
}

/// Refuses all waiting callers when the thread ends, even by a panic.
struct Ending(Arc<Shared>);

impl Drop for Ending {
    fn drop(&mut self) {
        let mut error = StorageError::Closed;
        if std::thread::panicking() {
            error = self.0.poison(&ended());
            self.0.hub.close(Some(&error));
        }
        for order in self.0.handover.end() {
            order.refuse(&error);
        }
    }
}

/// Lowers the priority of this thread below the commit thread and the writers: they sleep and wake often, and would
/// otherwise wait for a processor behind a thread that computes and copies. Only where the system has priorities per
/// thread.
fn give_way() {
    #[cfg(target_os = "linux")]
    // Without the permission, the priority stays.
    let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), NICE);
}

fn descending(mut revisions: Vec<Revision>) -> Vec<Revision> {
    revisions.sort_unstable_by(|a, b| b.cmp(a));
    revisions
}

/// Makes changes in a transaction. After an error the transaction may still be open.
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
    // Each step frees a page.
    while rows.next()?.is_some() {}
    Ok(())
}

/// Checkpoints the whole WAL, and truncates it if there are no readers.
fn truncate_wal(connection: &Connection) -> rusqlite::Result<()> {
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |_| Ok(()))
}
