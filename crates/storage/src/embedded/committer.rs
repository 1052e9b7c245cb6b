//! The commit thread: the only thread that decides writes.
//!
//! A round takes all waiting writes, appends them to the journal as one batch and syncs it (group commit); then it
//! publishes the events, answers the writers, and puts the batch into the backlog, which the apply thread
//! ([`super::applier`]) applies to the database.
//!
//! Once a commit fails in a way that leaves the state of the disk unknown, the store is poisoned: it refuses all
//! writes until the process is restarted and reads the disk. A failed sync must not be retried, because the kernel
//! may have dropped the pages it could not write.

use super::{
    deciding::Deciding,
    expirations::{Expirations, milliseconds},
    failures::Failure,
    handover::Order,
    inbox::{Command, Gathering, Reply, Taken},
    journal::Journal,
    shared::{Shared, ended},
    value::StoredValue,
    write::{Outcome, Write, WriteKind, answer},
};
use crate::{Revision, StorageError};
use std::{
    fs::File,
    sync::{Arc, atomic::Ordering},
    thread::JoinHandle,
    time::{Duration, Instant, SystemTime},
};

/// The bounds of a batch, in writes and in bytes; further writes wait for the next batch.
const MAX_BATCH_WRITES: usize = 1024;
const MAX_BATCH_BYTES: usize = 16 << 20;
/// The size of the backlog, in bytes of keys and stored values, above which writers wait
const MAX_BACKLOG_BYTES: u64 = 8 << 20;
/// until this fraction (one eighth) of it has been applied.
const RELIEF: u64 = 8;
/// The longest interval between checks of the clock, which may have been set.
const CLOCK_CHECK: Duration = Duration::from_secs(60);
/// The group commit window: writers that were answered together are waited for at most this fraction (a quarter) of
/// the time that their writes took, and at most `GATHERING_TIME`.
const GATHERING_SHARE: u32 = 4;
const GATHERING_TIME: Duration = Duration::from_micros(500);
/// The delay before the deletion of an expired key is retried.
const EXPIRY_RETRY: Duration = Duration::from_secs(10);

pub(super) struct Committer {
    shared: Arc<Shared>,
    journal: Journal,
    /// Held until the database is closed.
    lock: File,
    applier: JoinHandle<Result<(), StorageError>>,
    expirations: Expirations,
    /// The callers that requested a probe of the disk in this round.
    probes: Vec<Reply>,
    /// The number of writers answered in this round.
    answered: usize,
}

/// The parts of an open store that the commit thread owns.
pub(super) struct Owned {
    pub(super) lock: File,
    pub(super) journal: Journal,
    pub(super) expirations: Expirations,
}

impl Committer {
    pub(super) fn new(
        shared: Arc<Shared>,
        Owned { lock, journal, expirations }: Owned,
        applier: JoinHandle<Result<(), StorageError>>,
    ) -> Committer {
        Committer { shared, journal, lock, applier, expirations, probes: Vec::new(), answered: 0 }
    }

    pub(super) fn run(mut self) {
        let ending = Ending(Arc::clone(&self.shared));
        let mut gathering = None;
        loop {
            let Taken { commands, closing } = self.shared.inbox.take(self.patience(), gathering);
            let started = Instant::now();
            self.answered = 0;
            let mut writes = self.due();
            self.sort(commands, &mut writes);
            while !writes.is_empty() {
                let rest = writes.split_off(batch_length(&writes));
                let batch = std::mem::replace(&mut writes, rest);
                self.commit(batch, gathering);
            }
            self.probe();
            // With a single writer there is nothing to gather.
            gathering = (self.answered > 1).then(|| {
                let ended = Instant::now();
                let wait = (ended.saturating_duration_since(started) / GATHERING_SHARE).min(GATHERING_TIME);
                Gathering { expected: self.answered, until: ended + wait }
            });
            if closing {
                return self.close(ending);
            }
        }
    }

    /// Separates the writes from other commands.
    fn sort(&mut self, commands: Vec<Command>, writes: &mut Vec<Write>) {
        for command in commands {
            match command {
                Command::Write(write) => writes.push(write),
                Command::Probe { reply } => self.probes.push(reply),
            }
        }
    }

    /// The longest wait for commands: until the next expiry.
    fn patience(&self) -> Option<Duration> {
        if self.shared.poisoned().is_some() {
            return None;
        }
        let (at, ..) = self.expirations.first()?;
        let left = at.saturating_sub(milliseconds(SystemTime::now()));
        Some(Duration::from_millis(left).min(CLOCK_CHECK))
    }

    /// Deletes for the keys that have expired.
    fn due(&mut self) -> Vec<Write> {
        let mut writes = Vec::new();
        if self.expirations.is_empty() || self.shared.poisoned().is_some() {
            return writes;
        }
        let now = milliseconds(SystemTime::now());
        let state = self.shared.state.read();
        while self.expirations.first().is_some_and(|(at, ..)| *at <= now) && writes.len() < MAX_BATCH_WRITES {
            let Some((_, key, expected)) = self.expirations.pop_first() else { break };
            // A later write of the key has its own expiry, or none.
            if state.index.current(&key).is_some_and(|version| version.mod_revision == expected) {
                let kind = WriteKind::Delete { expected, existing: None };
                writes.push(Write { key, kind, stored: StoredValue::empty(), reply: None, runtime: None });
            }
        }
        writes
    }

    /// Commits writes, together with late writes of the group commit window.
    fn commit(&mut self, mut writes: Vec<Write>, gathering: Option<Gathering>) {
        match self.ready().and_then(|()| self.transact(&mut writes, gathering)) {
            Ok(outcomes) => {
                self.answered += writes.len();
                answer(writes, outcomes);
            }
            Err(error) => {
                let again = milliseconds(SystemTime::now() + EXPIRY_RETRY);
                for write in &writes {
                    if let (None, WriteKind::Delete { expected, .. }) = (&write.reply, &write.kind) {
                        self.expirations.insert((again, write.key.clone(), *expected));
                    }
                }
                refuse(writes, &error);
            }
        }
    }

    /// Checks that writes are accepted; waits while the backlog is too large.
    fn ready(&self) -> Result<(), StorageError> {
        if let Some(error) = self.shared.poisoned() {
            return Err(error);
        }
        let until = {
            let state = self.shared.state.read();
            match state.backlog.stuck() {
                true => Some(state.revision),
                false if state.backlog.bytes() > MAX_BACKLOG_BYTES => {
                    state.backlog.oldest(MAX_BACKLOG_BYTES / RELIEF).last().map(|batch| batch.revision)
                }
                false => None,
            }
        };
        until.map_or(Ok(()), |until| self.shared.apply(until))
    }

    /// Appends, syncs and publishes a batch.
    fn transact(
        &mut self,
        writes: &mut Vec<Write>,
        gathering: Option<Gathering>,
    ) -> Result<Vec<Outcome>, StorageError> {
        let shared = Arc::clone(&self.shared);
        let before = shared.state.read().revision;
        let mut deciding = Deciding::new(before);
        let mut outcomes = Vec::with_capacity(writes.len());
        let mut room = Room::beside(writes);
        self.decide(&mut deciding, writes, &mut outcomes);
        let late = shared.inbox.take_late(writes.len(), gathering, |command| match command {
            Command::Write(write) => room.fits(write),
            Command::Probe { .. } => true,
        });
        self.sort(late, writes);
        self.decide(&mut deciding, writes, &mut outcomes);
        let Deciding { mut batch, versions, expirations, .. } = deciding;
        if batch.revision == before {
            return Ok(outcomes);
        }
        self.journal.synced(Revision(shared.durable.load(Ordering::Acquire)));
        let file = self.journal.append(Revision(before.0 + 1));
        file.map_err(Failure::Journal)
            .and_then(|file| file.sync().map_err(Failure::Sync))
            .map_err(|failure| self.failed(failure))?;

        let mut state = shared.state.write();
        shared.hub.publish(&batch.events, batch.revision);
        batch.keep_for_history();
        for (key, version) in &versions {
            state.index.insert(key, *version);
        }
        state.revision = batch.revision;
        shared.published.store(batch.revision.0, Ordering::Release);
        state.backlog.push(Arc::new(batch));
        let enough = state.backlog.bytes() >= shared.transaction_bytes;
        drop(state);
        shared.handover.written(enough);
        shared.failures.lock().journal = None;
        self.expirations.extend(expirations);
        Ok(outcomes)
    }

    /// Decides the writes that have no outcome yet.
    fn decide(&mut self, deciding: &mut Deciding, writes: &mut [Write], outcomes: &mut Vec<Outcome>) {
        for write in writes.iter_mut().skip(outcomes.len()) {
            outcomes.push(deciding.decide(&self.shared, &mut self.journal, write));
        }
    }

    /// Records a failure, and returns the error for the callers.
    fn failed(&mut self, failure: Failure) -> StorageError {
        let full = failure.is_disk_full();
        let error = StorageError::from(failure);
        if !full {
            return self.shared.poison(&error);
        }
        tracing::error!(directory = %self.shared.directory.display(), "storage failed to write: {error}");
        self.shared.failures.lock().journal = Some(error.clone());
        error
    }

    /// Makes a change to the journal that needs space and has no effect. Answers the callers that requested a probe:
    /// with the error, or after a probe of the database.
    fn probe(&mut self) {
        if self.probes.is_empty() {
            return;
        }
        let first = Revision(self.shared.state.read().revision.0 + 1);
        let result = match self.shared.poisoned() {
            Some(error) => Err(error),
            None => self.journal.probe(first).map_err(|error| self.failed(Failure::Journal(error))),
        };
        for reply in self.probes.drain(..) {
            match &result {
                Ok(()) => self.shared.handover.order(Order::Probe { reply }),
                Err(error) => {
                    // The caller may have been dropped.
                    let _ = reply.send(Err(error.clone()));
                }
            }
        }
        if result.is_ok() {
            self.shared.failures.lock().journal = None;
        }
    }

    /// Leaves a database that has all writes, and no journal: the store can be moved and copied as one file.
    fn close(mut self, ending: Ending) {
        self.shared.readers.close();
        self.shared.handover.close();
        let mut result = self.applier.join().unwrap_or_else(|_| Err(ended()));
        if result.is_ok() && self.shared.poisoned().is_none() {
            result = self.journal.remove().map_err(|error| StorageError::from(Failure::Journal(error)));
        }
        drop(self.lock);
        ending.end(&result);
    }
}

/// Answers all waiting callers when the thread ends, even by a panic.
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
            self.0.poison(&ended());
            self.0.handover.close();
            self.0.hub.close(Some(&ended()));
            self.end(&Err(ended()));
        }
    }
}

fn refuse(writes: Vec<Write>, error: &StorageError) {
    for write in writes {
        write.answer(Err(error.clone().into()));
    }
}

/// The number of the first writes that fit into one batch.
fn batch_length(writes: &[Write]) -> usize {
    let mut room = Room { writes: MAX_BATCH_WRITES, bytes: MAX_BATCH_BYTES };
    writes.iter().take_while(|write| room.fits(write)).count().max(1)
}

/// The remaining room in a batch.
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

    /// Whether another write fits; if so, takes its room.
    fn fits(&mut self, write: &Write) -> bool {
        let (Some(writes), Some(bytes)) = (self.writes.checked_sub(1), self.bytes.checked_sub(write.size()))
        else {
            return false;
        };
        (self.writes, self.bytes) = (writes, bytes);
        true
    }
}
