//! Decides the writes of one batch one after the other; each sees those before it.

use super::{
    batch::{Batch, Row},
    expirations::milliseconds,
    journal::{Journal, encode_write},
    read,
    row::Entry,
    shared::Shared,
    value::StoredValue,
    write::{Outcome, Write, WriteKind},
};
use crate::{
    EventKind, Key, KeyValue, Revision, StorageError, StorageEvent, ValueState, WriteError,
    key_index::Version,
};
use bytes::Bytes;
use std::{collections::HashMap, time::SystemTime};

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
        Deciding {
            batch: Batch::new(revision),
            versions: Vec::new(),
            expirations: Vec::new(),
            written: HashMap::new(),
        }
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
            (WriteKind::Update { expected, .. } | WriteKind::Delete { expected, .. }, Some(current))
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
            // Other writes wait for this thread: it reads the value only if it must.
            WriteKind::Delete { existing, .. } => {
                let value = match existing {
                    Some(existing) => existing.clone(),
                    None => self.last_value(shared, previous, write)?.into(),
                };
                (EventKind::Delete, value, None)
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
