//! Decides the writes of one batch one after the other; each sees those before it.

use super::{
    Shared,
    journal::{Journal, encode_write},
    read,
    row::{Entry, Inserts, storage_error},
    value::StoredValue,
};
use crate::{
    EventKind, Key, KeyValue, Payload, Revision, StorageError, StorageEvent, ValueState, WriteError,
    key_index::Version,
};
use bytes::Bytes;
use std::{
    collections::HashMap,
    io,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::{
    runtime::{Handle, RuntimeFlavor},
    sync::{OwnedSemaphorePermit, oneshot},
};

/// A waiting write.
pub(super) struct Write {
    pub(super) key: Key,
    pub(super) kind: WriteKind,
    /// The stored form of its value.
    pub(super) stored: StoredValue,
    /// The writer's channel, and its place in the inbox; `None` when the engine itself deletes an expired key.
    pub(super) reply: Option<(oneshot::Sender<Outcome>, OwnedSemaphorePermit)>,
    /// The writer's [`current_runtime`].
    pub(super) runtime: Option<Handle>,
}

pub(super) type Outcome = Result<Revision, WriteError>;

pub(super) enum WriteKind {
    Create { value: Payload, ttl: Option<Duration> },
    Update { value: Payload, expected: Revision, ttl: Option<Duration> },
    Delete { expected: Revision },
}

impl WriteKind {
    /// The bytes to write.
    pub(super) fn value(&self) -> Option<&Bytes> {
        match self {
            WriteKind::Create { value, .. } | WriteKind::Update { value, .. } => Some(value.stored_form()),
            WriteKind::Delete { .. } => None,
        }
    }
}

impl Write {
    /// The bytes it takes in the journal: key and stored value.
    pub(super) fn size(&self) -> usize {
        self.key.as_str().len() + self.stored.bytes().len()
    }

    pub(super) fn answer(self, outcome: Outcome) {
        if let Some((reply, _)) = self.reply {
            // The writer may have been dropped; the write is kept.
            let _ = reply.send(outcome);
        }
    }
}

/// The runtime of the calling task, if it has worker threads: a current-thread runtime may not be running when its
/// task is woken.
pub(super) fn current_runtime() -> Option<Handle> {
    Handle::try_current().ok().filter(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread)
}

/// Sends the outcomes to the writers.
///
/// Waking a task of the runtime from another thread takes a system call, which is a large part of the total cost: so
/// only one new task is woken, and it wakes the writers from inside the runtime.
pub(super) fn answer(writes: Vec<Write>, outcomes: Vec<Outcome>) {
    let answers = Answers(writes.into_iter().zip(outcomes).collect());
    let runtime = answers.0.iter().find_map(|(write, _)| write.runtime.clone());
    if let Some(runtime) = runtime.filter(|_| answers.0.len() > 1) {
        // A runtime that has shut down drops the task at once.
        runtime.spawn(async move { drop(answers) });
    }
}

/// Outcomes that are sent to their writers on drop, on whichever thread that happens.
struct Answers(Vec<(Write, Outcome)>);

impl Drop for Answers {
    fn drop(&mut self) {
        for (write, outcome) in self.0.drain(..) {
            write.answer(outcome);
        }
    }
}

/// The effects of a batch, in revision order.
pub(super) struct Batch {
    /// The revision before the batch; `revision` is that of its last write.
    pub(super) before: Revision,
    pub(super) revision: Revision,
    rows: Vec<Row>,
    pub(super) events: Vec<StorageEvent>,
    /// The size of keys and stored values, in bytes.
    pub(super) bytes: u64,
}

/// A decided write.
struct Row {
    entry: Entry,
    checksum: i64,
    stored: StoredValue,
}

/// A batch that writes are being added to.
pub(super) struct Deciding {
    pub(super) batch: Batch,
    pub(super) versions: Vec<(Key, Version)>,
    /// The keys to delete at their expiry.
    pub(super) expirations: Vec<(u64, Key, Revision)>,
    /// The keys that this batch has written, which the index does not have yet.
    written: HashMap<Key, Version>,
}

impl Deciding {
    /// A batch after `revision`.
    pub(super) fn new(revision: Revision) -> Deciding {
        let batch = Batch { before: revision, revision, rows: Vec::new(), events: Vec::new(), bytes: 0 };
        Deciding { batch, versions: Vec::new(), expirations: Vec::new(), written: HashMap::new() }
    }

    /// Decides a write, and appends it to the journal's next batch. Its stored value moves into the batch.
    pub(super) fn decide(&mut self, shared: &Shared, journal: &mut Journal, write: &mut Write) -> Outcome {
        let current = match self.written.get(&write.key) {
            Some(version) => Some(*version),
            None => shared.state.read().index.current(&write.key),
        };
        let current = current.and_then(|version| Some((version.mod_revision, version.create_revision()?)));
        let (previous, created) = match (&write.kind, current) {
            (WriteKind::Create { .. }, Some(_)) => return Err(WriteError::KeyExists),
            (WriteKind::Create { .. }, None) => (Revision(0), Revision(0)),
            (WriteKind::Update { expected, .. } | WriteKind::Delete { expected }, Some(current))
                if current.0 == *expected =>
            {
                current
            }
            (WriteKind::Update { .. } | WriteKind::Delete { .. }, current) => {
                return Err(self.conflict(shared, &write.key, current));
            }
        };
        let revision = Revision(self.batch.revision.0 + 1);
        let (kind, value, ttl) = match &write.kind {
            WriteKind::Create { value, ttl } => (EventKind::Create, value.clone(), *ttl),
            WriteKind::Update { value, ttl, .. } => (EventKind::Update, value.clone(), *ttl),
            WriteKind::Delete { .. } => {
                (EventKind::Delete, self.last_value(shared, previous, write)?.into(), None)
            }
        };
        // A time beyond the clock's range never comes.
        let expires = ttl.and_then(|ttl| SystemTime::now().checked_add(ttl)).map_or(0, milliseconds);
        let create_revision = if kind == EventKind::Create { revision } else { created };
        let key = write.key.clone();
        let entry = Entry { revision, kind, key: key.clone(), create_revision, previous, expires };
        let checksum = write.stored.checksum(revision);
        journal.write(|bytes| encode_write(bytes, &entry, checksum, write.stored.bytes()));
        self.batch.bytes += write.size() as u64;
        let (version, mod_revision) = match kind {
            EventKind::Create | EventKind::Update => (Version::live(revision, create_revision), revision),
            EventKind::Delete => (Version::tombstone(revision), previous),
        };
        self.batch.revision = revision;
        if expires != 0 {
            self.expirations.push((expires, key.clone(), revision));
        }
        self.written.insert(key.clone(), version);
        self.versions.push((key.clone(), version));
        let stored = std::mem::replace(&mut write.stored, StoredValue::empty());
        self.batch.rows.push(Row { entry, checksum, stored });
        let kv = KeyValue { key, value, state: ValueState::Current, create_revision, mod_revision };
        self.batch.events.push(StorageEvent::Write { kind, revision, kv });
        Ok(revision)
    }

    fn conflict(&self, shared: &Shared, key: &Key, current: Option<(Revision, Revision)>) -> WriteError {
        let Some((mod_revision, create_revision)) = current else {
            return WriteError::Conflict { current: None };
        };
        match self.value(shared, mod_revision) {
            Ok(value) => WriteError::Conflict {
                current: Some(KeyValue {
                    key: key.clone(),
                    value: value.into(),
                    state: ValueState::Current,
                    create_revision,
                    mod_revision,
                }),
            },
            Err(error) => error.into(),
        }
    }

    /// The value that a delete removes. An expired key is deleted even if its value is unreadable, or it would never
    /// be deleted; a client gets the error instead.
    fn last_value(&self, shared: &Shared, revision: Revision, write: &Write) -> Result<Bytes, StorageError> {
        self.value(shared, revision).or_else(|error| match (&error, &write.reply) {
            (StorageError::Corrupt(_), None) => {
                tracing::error!(key = %write.key, %error, "an expired value cannot be read, and is deleted all the same");
                Ok(Bytes::new())
            }
            _ => Err(error),
        })
    }

    /// The value of a key's latest write, from this batch or before.
    fn value(&self, shared: &Shared, revision: Revision) -> Result<Bytes, StorageError> {
        let own = revision.0.checked_sub(self.batch.before.0 + 1).and_then(|at| usize::try_from(at).ok());
        match own.and_then(|at| self.batch.events.get(at)) {
            Some(StorageEvent::Write { kv, .. }) => Ok(kv.value.stored_form().clone()),
            _ => read::newest_value(shared, revision),
        }
    }
}

impl Batch {
    /// A batch that consists of events only, counted as one byte each.
    #[cfg(test)]
    pub(super) fn of(before: Revision, events: Vec<StorageEvent>) -> Batch {
        let bytes = events.len() as u64;
        Batch { before, revision: Revision(before.0 + bytes), rows: Vec::new(), events, bytes }
    }

    /// Drops the contents of its payloads that only the watches need, when they have been published.
    pub(super) fn keep_stored_forms(&mut self) {
        for event in &mut self.events {
            if let StorageEvent::Write { kv, .. } = event {
                kv.value.keep_stored_form();
            }
        }
    }

    /// Inserts the rows, in the caller's transaction.
    pub(super) fn insert(&self, inserts: &mut Inserts<'_>) -> rusqlite::Result<()> {
        self.rows
            .iter()
            .try_for_each(|Row { entry, checksum, stored }| inserts.insert(entry, *checksum, stored.bytes()))
    }
}

/// Milliseconds since 1970, at least 1.
pub(super) fn milliseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    u64::try_from(since).unwrap_or(u64::MAX >> 1).clamp(1, u64::MAX >> 1)
}

/// The cause of a failed write.
#[derive(Debug)]
pub(super) enum Failure {
    Database(rusqlite::Error),
    /// The batch was not appended; nothing that was written counts.
    Journal(io::Error),
    /// It is unknown whether the written data is on the disk.
    Sync(io::Error),
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Failure {
        Failure::Database(error)
    }
}

impl Failure {
    /// Whether the failure can be rolled back and retried: the disk was full, and nothing was kept. After any other
    /// failure the state of the disk is unknown.
    pub(super) fn is_disk_full(&self) -> bool {
        match self {
            Failure::Database(error) => error.sqlite_error_code() == Some(rusqlite::ErrorCode::DiskFull),
            Failure::Journal(error) => {
                matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
            }
            Failure::Sync(_) => false,
        }
    }
}

/// Converts a failure into the error for callers.
impl From<Failure> for StorageError {
    fn from(failure: Failure) -> StorageError {
        if failure.is_disk_full() {
            return StorageError::Engine("the disk is full".to_owned());
        }
        match failure {
            Failure::Database(error) => storage_error(error),
            Failure::Journal(error) => StorageError::Engine(format!("the journal: {error}")),
            Failure::Sync(error) => StorageError::Engine(format!("a sync: {error}")),
        }
    }
}
