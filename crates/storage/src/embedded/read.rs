//! Reads values back, on read-only connections.
//!
//! A read of several rows has to see the state of the index at which it chose them, while writes and compactions
//! continue. So it copies the values that are in the backlog, and begins its transaction, while it holds the index's
//! lock: rows are committed before the backlog drops them, and deleted after the index has dropped them, hence every
//! version in the index is in the backlog or in the database.

use super::{
    damage::{corrupt, missing_value, storage_error},
    row,
    schema::integer,
    shared::Shared,
    state::State,
    value::ReadValue,
};
use crate::{
    EventKind, GetResponse, Key, KeyValue, ListRequest, ListResponse, Revision, StorageError, StorageEvent,
    ValueState, key_index::Version,
};
use bytes::Bytes;
use rusqlite::{Connection, Transaction, TransactionBehavior};

/// The bounds of one piece of history: events, bytes of values, or rows examined.
const MAX_HISTORY_EVENTS: usize = 1024;
const MAX_HISTORY_BYTES: usize = 4 << 20;
const MAX_HISTORY_ROWS: usize = 64 * 1024;

/// The number of keys that are counted while the index is locked.
const COUNTED_KEYS: usize = 4096;

/// Begins a transaction that sees every version in the index while its lock is held.
fn snapshot<'connection>(
    connection: &'connection Connection,
    _locked: &State,
) -> Result<Transaction<'connection>, StorageError> {
    let begin = || {
        let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Deferred)?;
        // SQLite takes the snapshot at the first read, not at `BEGIN`.
        connection.prepare_cached("SELECT number FROM meta WHERE name = 'compacted'")?.exists(())?;
        Ok(transaction)
    };
    begin().map_err(storage_error)
}

fn value(connection: &Connection, revision: Revision) -> Result<Bytes, StorageError> {
    row::value(connection, revision)?.ok_or_else(|| missing_value(connection, revision))
}

/// A version from the index, and its value if that is in the backlog.
type Named = (Key, Version, Option<Bytes>);

fn named(state: &State, key: Key, version: Version) -> Named {
    (key, version, state.backlog.value(version.mod_revision).cloned())
}

fn pair(connection: &Connection, (key, version, value): Named) -> Result<Option<KeyValue>, StorageError> {
    let Some(create_revision) = version.create_revision() else { return Ok(None) };
    let mod_revision = version.mod_revision;
    let value = value.map_or_else(|| self::value(connection, mod_revision), Ok)?;
    Ok(Some(KeyValue { key, value: value.into(), state: ValueState::Current, create_revision, mod_revision }))
}

/// The latest value of a key, written at `revision`.
pub(super) fn newest_value(shared: &Shared, revision: Revision) -> Result<Bytes, StorageError> {
    if let Some(value) = shared.state.read().backlog.value(revision) {
        return Ok(value.clone());
    }
    shared.readers.with(|connection| value(connection, revision))
}

/// The answer about a key that memory has: the key does not exist, or its value is in the backlog.
pub(super) fn known(shared: &Shared, key: &Key) -> Option<GetResponse> {
    let state = shared.state.read();
    let revision = state.revision;
    let missing = GetResponse { kv: None, revision };
    let Some(version) = state.index.current(key) else { return Some(missing) };
    let Some(create_revision) = version.create_revision() else { return Some(missing) };
    let mod_revision = version.mod_revision;
    let value = state.backlog.value(mod_revision)?.clone().into();
    let kv = KeyValue { key: key.clone(), value, state: ValueState::Current, create_revision, mod_revision };
    Some(GetResponse { kv: Some(kv), revision })
}

pub(super) fn get(shared: &Shared, key: &Key) -> Result<GetResponse, StorageError> {
    shared.readers.with(|connection| {
        let state = shared.state.read();
        let revision = state.revision;
        let Some(version) = state.index.current(key) else { return Ok(GetResponse { kv: None, revision }) };
        let named = named(&state, key.clone(), version);
        let transaction = snapshot(connection, &state)?;
        drop(state);
        Ok(GetResponse { kv: pair(&transaction, named)?, revision })
    })
}

/// The pairs of a list, whose values are decompressed by the reader: memory that one thread allocates and another one
/// frees is not returned soon.
pub(super) struct PackedList {
    items: Vec<PackedPair>,
    more: bool,
    revision: Revision,
}

struct PackedPair {
    key: Key,
    value: ReadValue,
    create_revision: Revision,
    mod_revision: Revision,
}

impl PackedList {
    /// Decompresses the values.
    pub(super) fn unpack(self) -> Result<ListResponse, StorageError> {
        let items = self.items.into_iter().map(|PackedPair { key, value, create_revision, mod_revision }| {
            let damaged =
                || StorageError::Engine(format!("the value of revision {mod_revision} does not expand"));
            let value = value.unpack().ok_or_else(damaged)?;
            Ok(KeyValue { key, value, state: ValueState::Current, create_revision, mod_revision })
        });
        let items = items.collect::<Result<_, StorageError>>()?;
        Ok(ListResponse { items, more: self.more, revision: self.revision })
    }
}

fn packed_pair(
    connection: &Connection,
    (key, version, value): Named,
) -> Result<Option<PackedPair>, StorageError> {
    let Some(create_revision) = version.create_revision() else { return Ok(None) };
    let mod_revision = version.mod_revision;
    let value = match value {
        Some(value) => ReadValue::Plain(value),
        None => row::packed_value(connection, mod_revision)?
            .ok_or_else(|| missing_value(connection, mod_revision))?,
    };
    Ok(Some(PackedPair { key, value, create_revision, mod_revision }))
}

/// The answer to a list without pairs, which memory has: most resources of most clusters have no objects. `None` if there
/// may be pairs.
pub(super) fn empty_list(
    shared: &Shared,
    request: &ListRequest,
) -> Result<Option<ListResponse>, StorageError> {
    let state = shared.state.read();
    let revision = readable(&state, request.revision)?;
    let (count, more) = state.index.count(&request.prefix, request.start_after.as_ref(), 1, revision);
    let is_empty = count == 0 && more.is_none();
    Ok(is_empty.then(|| ListResponse { items: Vec::new(), more: false, revision }))
}

pub(super) fn get_list(shared: &Shared, request: &ListRequest) -> Result<PackedList, StorageError> {
    shared.readers.with(|connection| {
        let state = shared.state.read();
        let revision = readable(&state, request.revision)?;
        let range = state.index.range(&request.prefix, request.start_after.as_ref(), request.limit, revision);
        let versions: Vec<Named> =
            range.versions.into_iter().map(|(key, version)| named(&state, key, version)).collect();
        let transaction = snapshot(connection, &state)?;
        drop(state);
        let mut items = Vec::with_capacity(versions.len());
        for named in versions {
            items.extend(packed_pair(&transaction, named)?);
        }
        Ok(PackedList { items, more: range.more, revision })
    })
}

/// The revision of a read; without a requested one it is the latest.
fn readable(state: &State, requested: Option<Revision>) -> Result<Revision, StorageError> {
    let revision = requested.unwrap_or(state.revision);
    if revision > state.revision {
        return Err(StorageError::FutureRevision { requested: revision, current: state.revision });
    }
    if revision < state.compacted {
        return Err(StorageError::Compacted { compacted: state.compacted });
    }
    Ok(revision)
}

/// The number of keys of a range. The state at a revision does not change, so writers need not wait for the end.
pub(super) fn count(shared: &Shared, request: &ListRequest) -> Result<usize, StorageError> {
    let mut revision = request.revision;
    let mut start_after = request.start_after.clone();
    let mut count = 0;
    loop {
        let state = shared.state.read();
        let at = readable(&state, revision)?;
        revision = Some(at);
        let (counted, last) = state.index.count(&request.prefix, start_after.as_ref(), COUNTED_KEYS, at);
        count += counted;
        match last {
            Some(last) => start_after = Some(last),
            None => return Ok(count),
        }
    }
}

/// A piece of history after `after` and up to `until`, and the revision that it reaches.
pub(super) fn history(
    shared: &Shared,
    prefix: &str,
    after: Revision,
    until: Revision,
) -> Result<(Vec<StorageEvent>, Revision), StorageError> {
    shared.readers.with(|connection| {
        let state = shared.state.read();
        if after < state.compacted {
            return Err(StorageError::Compacted { compacted: state.compacted });
        }
        let wanted = |event: &&StorageEvent| match event {
            StorageEvent::Write { revision, kv, .. } => {
                *revision <= until && kv.key.as_str().starts_with(prefix)
            }
            StorageEvent::Progress(_) | StorageEvent::Error(_) => false,
        };
        let mut recent: Vec<StorageEvent> = state.backlog.after(after).filter(wanted).cloned().collect();
        for kv in recent.iter_mut().filter_map(deleted) {
            if let Some(value) = state.backlog.value(kv.mod_revision) {
                kv.value = value.clone().into();
            }
        }
        let applied = state.backlog.applied();
        let transaction = snapshot(connection, &state)?;
        drop(state);
        // The rest is in the backlog.
        let in_database = until.min(applied);
        let mut entries = transaction.prepare_cached(row::SELECT_ENTRIES_BETWEEN).map_err(storage_error)?;
        let between = (integer(after), integer(in_database));
        let entries = entries.query_map(between, row::Entry::from_row).map_err(storage_error)?;
        let mut events = Vec::new();
        let mut bytes = 0;
        // Revisions after the compaction are contiguous, and revision 1 is the empty store.
        let mut expected = after.0.max(1) + 1;
        for (looked_at, entry) in entries.enumerate() {
            let entry = entry.map_err(storage_error)?;
            let entry = entry.map_err(|at| corrupt_entry(&transaction, at, "fails its checksum"))?;
            if entry.revision.0 != expected {
                return Err(corrupt_entry(&transaction, Revision(expected), "is missing"));
            }
            expected += 1;
            if entry.key.as_str().starts_with(prefix) {
                let revision = entry.revision;
                let mod_revision = if entry.kind == EventKind::Delete { entry.previous } else { revision };
                let value = value(&transaction, mod_revision)?;
                bytes += value.len();
                let create_revision = entry.create_revision;
                let kv = KeyValue {
                    key: entry.key,
                    value: value.into(),
                    state: ValueState::Current,
                    create_revision,
                    mod_revision,
                };
                events.push(StorageEvent::Write { kind: entry.kind, revision, kv });
            }
            let enough = events.len() >= MAX_HISTORY_EVENTS
                || bytes >= MAX_HISTORY_BYTES
                || looked_at >= MAX_HISTORY_ROWS;
            if enough {
                return Ok((events, entry.revision));
            }
        }
        if expected <= in_database.0 {
            return Err(corrupt_entry(&transaction, Revision(expected), "is missing"));
        }
        // The other deleted values are in the database.
        for kv in recent.iter_mut().filter_map(deleted).filter(|kv| kv.mod_revision <= applied) {
            kv.value = value(&transaction, kv.mod_revision)?.into();
        }
        events.extend(recent);
        Ok((events, until))
    })
}

/// The pair that was deleted, if the event is that of a delete.
fn deleted(event: &mut StorageEvent) -> Option<&mut KeyValue> {
    match event {
        StorageEvent::Write { kind: EventKind::Delete, kv, .. } => Some(kv),
        StorageEvent::Write { .. } | StorageEvent::Progress(_) | StorageEvent::Error(_) => None,
    }
}

/// The error for a damaged or missing row of history.
fn corrupt_entry(connection: &Connection, revision: Revision, how: &str) -> StorageError {
    corrupt(connection, "writes", revision, "the row of revision", how)
}
