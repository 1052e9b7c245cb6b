//! The engine without a disk: for tests, and for servers without durable data.
//!
//! One mutex guards all state. History is kept until it is compacted, as in the other engines, so it grows with every
//! write of a store that is not compacted.
//!
//! Lock order: the state, then the hub. Writes are published under the state's lock, so that watchers see them in
//! order and a watch that starts misses none.

use crate::{
    BoxFuture, CompactionRound, EventKind, GetResponse, Key, KeyValue, ListRequest, ListResponse, Payload,
    Revision, Storage, StorageError, StorageEvent, ValueState, WatchRequest, WatchStream, WriteError,
    hub::WatchHub,
    key_index::{COMPACTED_KEYS, KeyIndex, Version},
    snapshot::{SnapshotPage, SnapshotRecord, SnapshotSource, now_milliseconds},
};
use parking_lot::{Mutex, MutexGuard};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Weak},
    time::Duration,
};
use tokio::{sync::Notify, time::Instant};

/// An engine that keeps everything in memory.
pub struct MemoryStorage {
    shared: Arc<Shared>,
    /// The size of the largest value, in bytes.
    limit: usize,
}

struct Shared {
    state: Mutex<State>,
    hub: Arc<WatchHub>,
    /// Wakes the expiry task: the next expiry changed, or the engine was dropped.
    expiry: Arc<Notify>,
}

#[derive(Default)]
struct State {
    index: KeyIndex,
    rows: BTreeMap<Revision, Row>,
    revision: Revision,
    compacted: Revision,
    /// Keys by expiry; the revision shows whether the key was written again since.
    expirations: BTreeSet<(Instant, Key, Revision)>,
    expiry_runs: bool,
    closed: bool,
}

/// One write.
struct Row {
    kind: EventKind,
    /// The pair as written; for a delete the deleted pair.
    kv: KeyValue,
}

impl MemoryStorage {
    /// Refuses larger values, as other engines do.
    #[must_use]
    pub fn with_limit(mut self, bytes: usize) -> MemoryStorage {
        self.limit = bytes;
        self
    }

    fn check_size(&self, value: &Payload) -> Result<(), StorageError> {
        match value.stored_form().len() > self.limit {
            true => Err(StorageError::TooLarge("the value is too large".to_owned())),
            false => Ok(()),
        }
    }

    /// An empty store.
    #[expect(clippy::new_without_default, reason = "a new store each time, which `Default` would not tell")]
    pub fn new() -> MemoryStorage {
        // An empty store is at revision 1, as in etcd, so that zero can mean "none".
        let revision = Revision(1);
        MemoryStorage {
            shared: Arc::new(Shared {
                state: Mutex::new(State { revision, ..State::default() }),
                hub: WatchHub::new(revision),
                expiry: Arc::new(Notify::new()),
            }),
            limit: usize::MAX,
        }
    }
}

impl Drop for MemoryStorage {
    fn drop(&mut self) {
        self.shared.expiry.notify_one();
    }
}

impl State {
    fn open(&self) -> Result<(), StorageError> {
        if self.closed { Err(StorageError::Closed) } else { Ok(()) }
    }

    /// The revision of a read; without a requested one it is the latest.
    fn readable(&self, requested: Option<Revision>) -> Result<Revision, StorageError> {
        let revision = requested.unwrap_or(self.revision);
        if revision > self.revision {
            return Err(StorageError::FutureRevision { requested: revision, current: self.revision });
        }
        if revision < self.compacted {
            return Err(StorageError::Compacted { compacted: self.compacted });
        }
        Ok(revision)
    }

    fn pair(&self, version: Version) -> Option<KeyValue> {
        self.rows.get(&version.mod_revision).map(|row| row.kv.clone())
    }

    fn current(&self, key: &Key) -> Option<KeyValue> {
        self.pair(self.index.current(key)?)
    }

    /// The pair of `key` if its `mod_revision` is `expected`.
    fn expect(&self, key: &Key, expected: Revision) -> Result<KeyValue, WriteError> {
        match self.current(key) {
            Some(kv) if kv.mod_revision == expected => Ok(kv),
            current => Err(WriteError::Conflict { current }),
        }
    }

    fn put(&mut self, kind: EventKind, mut kv: KeyValue, hub: &WatchHub) -> Revision {
        let revision = Revision(self.revision.0 + 1);
        let version = match kind {
            EventKind::Create => {
                kv.create_revision = revision;
                kv.mod_revision = revision;
                Version::live(revision, revision)
            }
            EventKind::Update => {
                kv.mod_revision = revision;
                Version::live(revision, kv.create_revision)
            }
            EventKind::Delete => Version::tombstone(revision),
        };
        self.revision = revision;
        self.index.insert(&kv.key, version);
        hub.publish(&[StorageEvent::Write { kind, revision, kv: kv.clone() }], revision);
        kv.value.keep_stored_form();
        self.rows.insert(revision, Row { kind, kv });
        revision
    }
}

impl Shared {
    fn expire_at(self: &Arc<Self>, state: &mut State, key: &Key, revision: Revision, ttl: Option<Duration>) {
        // A time beyond the clock's range never comes.
        let Some(at) = ttl.and_then(|ttl| Instant::now().checked_add(ttl)) else { return };
        state.expirations.insert((at, key.clone(), revision));
        self.expiry.notify_one();
        if !state.expiry_runs {
            state.expiry_runs = true;
            tokio::spawn(expire(Arc::downgrade(self), Arc::clone(&self.expiry)));
        }
    }

    /// Deletes expired keys, and returns the time of the next expiry.
    fn expire_due(&self) -> Option<Instant> {
        let mut state = self.state.lock();
        let now = Instant::now();
        while let Some((at, ..)) = state.expirations.first() {
            if *at > now {
                return Some(*at);
            }
            let Some((_, key, revision)) = state.expirations.pop_first() else { break };
            if let Ok(kv) = state.expect(&key, revision)
                && !state.closed
            {
                state.put(EventKind::Delete, kv, &self.hub);
            }
        }
        None
    }
}

/// The expiry task: runs as long as the engine exists.
async fn expire(shared: Weak<Shared>, changed: Arc<Notify>) {
    loop {
        let Some(next) = shared.upgrade().map(|shared| shared.expire_due()) else { return };
        match next {
            Some(at) => {
                let _ = tokio::time::timeout_at(at, changed.notified()).await;
            }
            None => changed.notified().await,
        }
    }
}

impl SnapshotSource for MemoryStorage {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn page(&self, request: ListRequest) -> BoxFuture<'_, Result<SnapshotPage, StorageError>> {
        Box::pin(async move {
            let list = self.get_list(request).await?;
            let state = self.shared.state.lock();
            let expires = |kv: &KeyValue| {
                let of_this_write = |(_, key, revision): &&(Instant, Key, Revision)| {
                    *key == kv.key && *revision == kv.mod_revision
                };
                let (at, ..) = state.expirations.iter().find(of_this_write)?;
                let left = at.saturating_duration_since(Instant::now()).as_millis();
                Some(now_milliseconds().saturating_add(u64::try_from(left).unwrap_or(u64::MAX)))
            };
            let record = |kv: KeyValue| SnapshotRecord {
                expires: expires(&kv).unwrap_or_default(),
                key: kv.key,
                value: kv.value.bytes,
                create_revision: kv.create_revision,
                mod_revision: kv.mod_revision,
            };
            let records = list.items.into_iter().map(record).collect();
            Ok(SnapshotPage { records, more: list.more, revision: list.revision })
        })
    }
}

impl Storage for MemoryStorage {
    fn create(
        &self,
        key: &Key,
        value: Payload,
        ttl: Option<Duration>,
    ) -> BoxFuture<'_, Result<Revision, WriteError>> {
        let key = key.clone();
        Box::pin(async move {
            let mut state = self.shared.state.lock();
            state.open()?;
            self.check_size(&value)?;
            if state.index.current(&key).is_some() {
                return Err(WriteError::KeyExists);
            }
            let unset = Revision(0);
            let kv = KeyValue {
                key: key.clone(),
                value,
                state: ValueState::Current,
                create_revision: unset,
                mod_revision: unset,
            };
            let revision = state.put(EventKind::Create, kv, &self.shared.hub);
            self.shared.expire_at(&mut state, &key, revision, ttl);
            Ok(revision)
        })
    }

    fn update(
        &self,
        key: &Key,
        value: Payload,
        expected: Revision,
        ttl: Option<Duration>,
    ) -> BoxFuture<'_, Result<Revision, WriteError>> {
        let key = key.clone();
        Box::pin(async move {
            let mut state = self.shared.state.lock();
            state.open()?;
            self.check_size(&value)?;
            let kv = KeyValue { value, ..state.expect(&key, expected)? };
            let revision = state.put(EventKind::Update, kv, &self.shared.hub);
            self.shared.expire_at(&mut state, &key, revision, ttl);
            Ok(revision)
        })
    }

    fn delete(&self, key: &Key, expected: Revision) -> BoxFuture<'_, Result<Revision, WriteError>> {
        let key = key.clone();
        Box::pin(async move {
            let mut state = self.shared.state.lock();
            state.open()?;
            let kv = state.expect(&key, expected)?;
            Ok(state.put(EventKind::Delete, kv, &self.shared.hub))
        })
    }

    fn get(&self, key: &Key) -> BoxFuture<'_, Result<GetResponse, StorageError>> {
        let key = key.clone();
        Box::pin(async move {
            let state = self.shared.state.lock();
            state.open()?;
            Ok(GetResponse { kv: state.current(&key), revision: state.revision })
        })
    }

    fn get_list(&self, request: ListRequest) -> BoxFuture<'_, Result<ListResponse, StorageError>> {
        Box::pin(async move {
            let state = self.shared.state.lock();
            state.open()?;
            let revision = state.readable(request.revision)?;
            let range =
                state.index.range(&request.prefix, request.start_after.as_ref(), request.limit, revision);
            let items = range.versions.iter().filter_map(|(_, version)| state.pair(*version)).collect();
            Ok(ListResponse { items, more: range.more, revision })
        })
    }

    fn count(&self, request: ListRequest) -> BoxFuture<'_, Result<usize, StorageError>> {
        Box::pin(async move {
            let state = self.shared.state.lock();
            state.open()?;
            let revision = state.readable(request.revision)?;
            let start_after = request.start_after.as_ref();
            Ok(state.index.count(&request.prefix, start_after, usize::MAX, revision).0)
        })
    }

    fn watch(&self, request: WatchRequest) -> BoxFuture<'_, Result<WatchStream, StorageError>> {
        Box::pin(async move {
            let state = self.shared.state.lock();
            state.open()?;
            if request.after < state.compacted {
                return Err(StorageError::Compacted { compacted: state.compacted });
            }
            let history = state
                .rows
                .range(Revision(request.after.0.saturating_add(1))..)
                .filter(|(_, row)| row.kv.key.as_str().starts_with(&request.prefix))
                .map(|(revision, row)| StorageEvent::Write {
                    kind: row.kind,
                    revision: *revision,
                    kv: row.kv.clone(),
                })
                .collect();
            let (receiver, _) = self.shared.hub.watch(request.prefix, request.after)?;
            receiver.prepend(history);
            Ok(Box::new(receiver) as WatchStream)
        })
    }

    fn current_revision(&self) -> BoxFuture<'_, Result<Revision, StorageError>> {
        Box::pin(async move {
            let state = self.shared.state.lock();
            state.open()?;
            Ok(state.revision)
        })
    }

    fn request_progress(&self) -> BoxFuture<'_, Result<(), StorageError>> {
        Box::pin(async move {
            let state = self.shared.state.lock();
            state.open()?;
            self.shared.hub.progress();
            Ok(())
        })
    }

    fn compact(&self, revision: Revision) -> BoxFuture<'_, Result<(), StorageError>> {
        Box::pin(async move {
            let mut state = self.shared.state.lock();
            state.open()?;
            if revision > state.revision {
                return Err(StorageError::FutureRevision { requested: revision, current: state.revision });
            }
            if revision > state.compacted {
                state.compacted = revision;
                let (mut forgotten, mut start) = (Vec::new(), None);
                loop {
                    start =
                        state.index.compact_slice(revision, start.as_ref(), COMPACTED_KEYS, &mut forgotten);
                    for revision in forgotten.drain(..) {
                        state.rows.remove(&revision);
                    }
                    if start.is_none() {
                        break;
                    }
                    // Threads that wait for the lock get it.
                    MutexGuard::bump(&mut state);
                }
            }
            Ok(())
        })
    }

    fn compact_periodically(
        &self,
        last: CompactionRound,
    ) -> BoxFuture<'_, Result<CompactionRound, StorageError>> {
        Box::pin(last.alone(self))
    }

    fn health(&self) -> BoxFuture<'_, Result<(), StorageError>> {
        Box::pin(async move { self.shared.state.lock().open() })
    }

    fn compacted_revision(&self) -> Revision {
        self.shared.state.lock().compacted
    }

    fn size(&self) -> BoxFuture<'_, Result<u64, StorageError>> {
        Box::pin(async move {
            let state = self.shared.state.lock();
            state.open()?;
            let bytes = |row: &Row| row.kv.key.as_str().len() + row.kv.value.len();
            Ok(state.rows.values().map(|row| bytes(row) as u64).sum())
        })
    }

    fn close(&self) -> BoxFuture<'_, Result<(), StorageError>> {
        Box::pin(async move {
            let mut state = self.shared.state.lock();
            state.closed = true;
            self.shared.hub.close(None);
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::StorageFactory;

    struct Memory;

    impl StorageFactory for Memory {
        fn open(&self) -> BoxFuture<'_, Arc<dyn Storage>> {
            Box::pin(async { Arc::new(MemoryStorage::new()) as Arc<dyn Storage> })
        }
    }

    crate::storage_contract!(Memory);
}
