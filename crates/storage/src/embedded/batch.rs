//! One batch: writes decided one after the other, each seeing those before it.

use super::{
    Shared,
    journal::{Journal, encode_write},
    read,
    row::{Entry, Inserts, storage_error},
    value::StoredValue,
};
use crate::{
    EventKind, Key, KeyValue, Revision, StorageError, StorageEvent, ValueState, WriteError,
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

/// A write that waits.
pub(super) struct Write {
    pub(super) key: Key,
    pub(super) kind: WriteKind,
    /// What is stored of its value.
    pub(super) stored: StoredValue,
    /// Who wants to know, and its place in the inbox; nobody, when the engine itself deletes what has expired.
    pub(super) reply: Option<(oneshot::Sender<Outcome>, OwnedSemaphorePermit)>,
    /// What [`current_runtime`] was for who wants to know.
    pub(super) runtime: Option<Handle>,
}

pub(super) type Outcome = Result<Revision, WriteError>;

pub(super) enum WriteKind {
    Create { value: Bytes, ttl: Option<Duration> },
    Update { value: Bytes, expected: Revision, ttl: Option<Duration> },
    Delete { expected: Revision },
}

impl WriteKind {
    pub(super) fn value(&self) -> Option<&Bytes> {
        match self {
            WriteKind::Create { value, .. } | WriteKind::Update { value, .. } => Some(value),
            WriteKind::Delete { .. } => None,
        }
    }
}

impl Write {
    /// Bytes it takes in the log.
    pub(super) fn size(&self) -> usize {
        self.key.as_str().len() + self.stored.bytes().len()
    }

    pub(super) fn answer(self, outcome: Outcome) {
        if let Some((reply, _)) = self.reply {
            // The writer may have gone away; the write stays all the same.
            let _ = reply.send(outcome);
        }
    }
}

/// The runtime of the calling task, if it has threads of its own: another may not be running when its task is woken.
pub(super) fn current_runtime() -> Option<Handle> {
    Handle::try_current().ok().filter(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread)
}

/// Tells writers how their writes went.
///
/// Waking a task of the runtime from outside takes a system call, which costs more than much of the rest: so only one
/// is woken, a new one, that wakes the writers from inside.
pub(super) fn answer(writes: Vec<Write>, outcomes: Vec<Outcome>) {
    let answers = Answers(writes.into_iter().zip(outcomes).collect());
    let runtime = answers.0.iter().find_map(|(write, _)| write.runtime.clone());
    if let Some(runtime) = runtime.filter(|_| answers.0.len() > 1) {
        // A runtime that has ended drops the task at once.
        runtime.spawn(async move { drop(answers) });
    }
}

/// Writers who are told when this is dropped, wherever that happens.
struct Answers(Vec<(Write, Outcome)>);

impl Drop for Answers {
    fn drop(&mut self) {
        for (write, outcome) in self.0.drain(..) {
            write.answer(outcome);
        }
    }
}

/// What a batch does, in revision order.
pub(super) struct Batch {
    /// The revision before it, and that of its newest write.
    pub(super) before: Revision,
    pub(super) revision: Revision,
    rows: Vec<Row>,
    pub(super) events: Vec<StorageEvent>,
    /// Bytes of keys and stored values.
    pub(super) bytes: u64,
}

/// A write that was decided.
struct Row {
    entry: Entry,
    checksum: i64,
    stored: StoredValue,
}

/// A batch to which writes are being added.
pub(super) struct Deciding {
    pub(super) batch: Batch,
    pub(super) versions: Vec<(Key, Version)>,
    /// What is to be deleted when.
    pub(super) expirations: Vec<(u64, Key, Revision)>,
    /// The keys this batch has written: what the index does not know yet.
    written: HashMap<Key, Version>,
}

impl Deciding {
    /// A batch after `revision`.
    pub(super) fn new(revision: Revision) -> Deciding {
        let batch = Batch { before: revision, revision, rows: Vec::new(), events: Vec::new(), bytes: 0 };
        Deciding { batch, versions: Vec::new(), expirations: Vec::new(), written: HashMap::new() }
    }

    /// Decides a write, and puts it into the journal's next batch. What it stores goes with the batch.
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
            WriteKind::Delete { .. } => (EventKind::Delete, self.last_value(shared, previous, write)?, None),
        };
        // A time beyond what the clock can tell never comes.
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
                    value,
                    state: ValueState::Current,
                    create_revision,
                    mod_revision,
                }),
            },
            Err(error) => error.into(),
        }
    }

    /// The value that a delete removes. A key that expires goes even if its value cannot be read any more, or it would stay for
    /// ever; a client is told instead.
    fn last_value(&self, shared: &Shared, revision: Revision, write: &Write) -> Result<Bytes, StorageError> {
        self.value(shared, revision).or_else(|error| match (&error, &write.reply) {
            (StorageError::Corrupt(_), None) => {
                tracing::error!(key = %write.key, %error, "an expired value cannot be read, and is deleted all the same");
                Ok(Bytes::new())
            }
            _ => Err(error),
        })
    }

    /// The value of a key's newest write, of this batch or before.
    fn value(&self, shared: &Shared, revision: Revision) -> Result<Bytes, StorageError> {
        let own = revision.0.checked_sub(self.batch.before.0 + 1).and_then(|at| usize::try_from(at).ok());
        match own.and_then(|at| self.batch.events.get(at)) {
            Some(StorageEvent::Write { kv, .. }) => Ok(kv.value.clone()),
            _ => read::newest_value(shared, revision),
        }
    }
}

impl Batch {
    /// A batch that is nothing but its events, each of them a byte long.
    #[cfg(test)]
    pub(super) fn of(before: Revision, events: Vec<StorageEvent>) -> Batch {
        let bytes = events.len() as u64;
        Batch { before, revision: Revision(before.0 + bytes), rows: Vec::new(), events, bytes }
    }

    /// Inserts the rows, in a transaction of the caller's.
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

/// Why writing failed.
#[derive(Debug)]
pub(super) enum Failure {
    Database(rusqlite::Error),
    /// Nothing of a batch was written that counts.
    Journal(io::Error),
    /// Whether something that was written is on the disk, nobody knows.
    Sync(io::Error),
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Failure {
        Failure::Database(error)
    }
}

impl Failure {
    /// Whether what failed this way can be rolled back and tried again: the disk was full, and nothing of it was kept.
    /// After any other failure nobody knows what is on the disk.
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

/// A failure as callers are told it.
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
