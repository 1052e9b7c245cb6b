//! Keys, bytes and revisions.
//!
//! [`Storage`] is the one interface between the registry and whatever keeps the data, in etcd's terms
//! (<https://etcd.io/docs/v3.6/learning/data_model/>): a flat, ordered space of keys, one revision counter over
//! all of them, every write getting the next revision, and history kept until it is compacted.
//!
//! The crate knows nothing of Kubernetes kinds and nothing of HTTP. Values are bytes.
//!
//! Every engine passes the same contract suite, [`contract`].

pub mod contract;
mod embedded;
mod error;
mod etcd;
mod hub;
mod key;
mod key_index;
mod memory;
#[cfg(test)]
mod model;
pub mod snapshot;
mod transform;
mod transformed;
mod watch;

pub use embedded::{EmbeddedOptions, EmbeddedSnapshot, EmbeddedStorage, OpenError, restore_embedded};
pub use error::{StorageError, WriteError};
pub use etcd::{EtcdObserver, EtcdOpenError, EtcdOptions, EtcdSnapshotStore, EtcdStorage};
pub use key::{Key, Revision};
pub use memory::MemoryStorage;
pub use transform::{ReadError, TransformError, Transformed, ValueState, ValueTransformer};
pub use transformed::TransformedStorage;
pub use watch::{EventKind, StorageEvent, WatchReceiver, WatchRequest, WatchStream};

use bytes::Bytes;
use std::{future::Future, pin::Pin, time::Duration};

/// A boxed future, as the object-safe [`Storage`] trait returns it.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// One key's value at some revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyValue {
    /// The key.
    pub key: Key,
    /// What was written, byte for byte.
    pub value: Bytes,
    /// What reading the value back told, where it is stored in another form.
    pub state: ValueState,
    /// The revision of the write that made the key (after its last deletion).
    pub create_revision: Revision,
    /// The revision of the write that set `value`.
    pub mod_revision: Revision,
}

/// The answer to [`Storage::get`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GetResponse {
    /// The pair, or `None` when the key does not exist at that revision.
    pub kv: Option<KeyValue>,
    /// The store's revision when it answered.
    pub revision: Revision,
}

/// What [`Storage::get_list`] reads.
#[derive(Debug, Clone)]
pub struct ListRequest {
    /// Only keys with this prefix, ordered bytewise.
    pub prefix: String,
    /// Only keys strictly after this one.
    pub start_after: Option<Key>,
    /// At most so many pairs; 0 means all.
    pub limit: usize,
    /// The state as of this revision; `None` is the newest state.
    pub revision: Option<Revision>,
}

/// The answer to [`Storage::get_list`].
#[derive(Debug, Clone)]
pub struct ListResponse {
    /// The pairs, in key order.
    pub items: Vec<KeyValue>,
    /// Whether keys of the prefix remain after the last item.
    pub more: bool,
    /// The revision whose state was read (the request's, or the newest).
    pub revision: Revision,
}

/// What one round of the periodic compaction leaves to the next; the first one begins with the default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CompactionRound {
    /// The newest revision at that time.
    pub revision: Revision,
    /// The rounds of all servers that share the store, as far as this one has seen.
    pub number: i64,
}

impl CompactionRound {
    /// The next round of a store that no other server shares.
    async fn alone(self, storage: &dyn Storage) -> Result<CompactionRound, StorageError> {
        if self.revision > Revision(0) {
            storage.compact(self.revision).await?;
        }
        Ok(CompactionRound { revision: storage.current_revision().await?, number: self.number + 1 })
    }
}

/// An engine.
///
/// Guarantees, which [`contract`] tests on every engine:
/// - A write whose future returned `Ok` is durable (as durable as the engine is: the memory engine is not).
/// - Revisions grow by one for every successful write and never go back, restarts included. The first write of an
///   empty store gets a revision greater than 1.
/// - A read started after a write was acknowledged sees that write.
/// - Dropping a write's future does not say whether the write happens.
pub trait Storage: Send + Sync + 'static {
    /// Writes a new key. `ttl` removes the key after that time, as a delete of its own.
    ///
    /// # Errors
    /// [`WriteError::KeyExists`] when the key exists.
    fn create(
        &self,
        key: &Key,
        value: Bytes,
        ttl: Option<Duration>,
    ) -> BoxFuture<'_, Result<Revision, WriteError>>;

    /// Replaces the value of a key whose `mod_revision` is exactly `expected` (compare-and-swap).
    ///
    /// # Errors
    /// [`WriteError::Conflict`] with the current pair otherwise (`None` when there is none).
    fn update(
        &self,
        key: &Key,
        value: Bytes,
        expected: Revision,
        ttl: Option<Duration>,
    ) -> BoxFuture<'_, Result<Revision, WriteError>>;

    /// Deletes a key whose `mod_revision` is exactly `expected`; the returned revision is the deletion's own.
    ///
    /// # Errors
    /// [`WriteError::Conflict`] with the current pair otherwise (`None` when there is none).
    fn delete(&self, key: &Key, expected: Revision) -> BoxFuture<'_, Result<Revision, WriteError>>;

    /// Reads one key's newest value, linearizably.
    fn get(&self, key: &Key) -> BoxFuture<'_, Result<GetResponse, StorageError>>;

    /// Reads a range of keys from one revision.
    ///
    /// # Errors
    /// [`StorageError::Compacted`] when `revision` is older than the compaction, [`StorageError::FutureRevision`]
    /// when it has not happened yet.
    fn get_list(&self, request: ListRequest) -> BoxFuture<'_, Result<ListResponse, StorageError>>;

    /// Follows the writes to a prefix from a revision on. Every write after `request.after` comes exactly once, in
    /// revision order, once it is durable; the writes before the call come from history. A write reaches the watches
    /// before it is acknowledged to its writer. A revision that has not happened yet may be asked for.
    ///
    /// # Errors
    /// [`StorageError::Compacted`] when `request.after` is older than the compaction.
    fn watch(&self, request: WatchRequest) -> BoxFuture<'_, Result<WatchStream, StorageError>>;

    /// The newest acknowledged revision, linearizably: not older than any write acknowledged before the call.
    fn current_revision(&self) -> BoxFuture<'_, Result<Revision, StorageError>>;

    /// Asks that every open watch be told, by [`StorageEvent::Progress`], of a revision not older than the store's
    /// current one, after all events up to it. Returns without waiting for that.
    fn request_progress(&self) -> BoxFuture<'_, Result<(), StorageError>>;

    /// Forgets history before `revision`: reads and watches from before it fail with [`StorageError::Compacted`].
    /// The newest value of every key stays. Compacting what is compacted already changes nothing.
    ///
    /// # Errors
    /// [`StorageError::FutureRevision`] when `revision` has not happened yet.
    fn compact(&self, revision: Revision) -> BoxFuture<'_, Result<(), StorageError>>;

    /// The oldest revision that can be read, as far as this engine knows: others may have compacted a shared store
    /// meanwhile. Zero when it knows of no compaction.
    fn compacted_revision(&self) -> Revision {
        Revision(0)
    }

    /// One round of the periodic compaction: forgets the history before the round that the caller made last, an interval
    /// ago, and returns what to hand to the next one. Where several servers share a store, one of them compacts.
    ///
    /// # Errors
    /// When the round failed; the caller goes on with the round it has.
    fn compact_periodically(
        &self,
        last: CompactionRound,
    ) -> BoxFuture<'_, Result<CompactionRound, StorageError>>;

    /// Whether the engine can serve: an error says why not.
    fn health(&self) -> BoxFuture<'_, Result<(), StorageError>>;

    /// Bytes the data takes on its medium, as `apiserver_storage_size_bytes` reports it.
    fn size(&self) -> BoxFuture<'_, Result<u64, StorageError>>;

    /// Ends open watches, finishes writes that were accepted, syncs and closes. Later calls fail with
    /// [`StorageError::Closed`], but for another `close`, which changes nothing.
    fn close(&self) -> BoxFuture<'_, Result<(), StorageError>>;
}
