//! The interface of the storage engines.

use crate::{
    BoxFuture, GetResponse, Key, ListRequest, ListResponse, Payload, Revision, StorageError, WatchRequest,
    WatchStream, WriteError,
};
use std::time::Duration;

/// The state that one round of the periodic compaction passes to the next; the first round begins with the default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CompactionRound {
    /// The latest revision at the time of the round.
    pub revision: Revision,
    /// The number of rounds of all servers that share the store, as far as this server has seen.
    pub number: i64,
}

impl CompactionRound {
    /// The next round for a store that no other server shares.
    pub(crate) async fn alone(self, storage: &dyn Storage) -> Result<CompactionRound, StorageError> {
        if self.revision > Revision(0) {
            storage.compact(self.revision).await?;
        }
        Ok(CompactionRound { revision: storage.current_revision().await?, number: self.number + 1 })
    }
}

/// A storage engine.
///
/// Guarantees, which [`contract`](crate::contract) tests on every engine:
/// - A write whose future returned `Ok` is durable (as far as the engine is durable: the memory engine is not).
/// - Revisions grow by one for every successful write and never decrease, restarts included. The first write of an
///   empty store gets a revision greater than 1.
/// - A read started after a write was acknowledged sees that write.
/// - Dropping a write's future leaves open whether the write happens.
pub trait Storage: Send + Sync + 'static {
    /// Writes a new key. `ttl` deletes the key after that time, as a write with its own revision.
    ///
    /// # Errors
    /// [`WriteError::KeyExists`] when the key exists; [`WriteError::Transform`] and [`WriteError::Storage`].
    fn create(
        &self,
        key: &Key,
        value: Payload,
        ttl: Option<Duration>,
    ) -> BoxFuture<'_, Result<Revision, WriteError>>;

    /// Replaces the value of a key whose `mod_revision` is exactly `expected` (compare-and-swap).
    ///
    /// # Errors
    /// [`WriteError::Conflict`] with the current pair otherwise (`None` when the key does not exist);
    /// [`WriteError::Transform`] and [`WriteError::Storage`].
    fn update(
        &self,
        key: &Key,
        value: Payload,
        expected: Revision,
        ttl: Option<Duration>,
    ) -> BoxFuture<'_, Result<Revision, WriteError>>;

    /// Deletes a key whose `mod_revision` is exactly `expected`; returns the revision of the deletion.
    ///
    /// # Errors
    /// [`WriteError::Conflict`] with the current pair otherwise (`None` when the key does not exist);
    /// [`WriteError::Storage`].
    fn delete(&self, key: &Key, expected: Revision) -> BoxFuture<'_, Result<Revision, WriteError>>;

    /// As [`Storage::delete`], for a caller that has the value that was written at `expected`, perhaps from a watch cache.
    /// An engine that would have to read the value for the event of the deletion uses `existing` in its place, without
    /// comparing them. Whether the key is deleted depends on `expected` alone.
    ///
    /// # Errors
    /// As [`Storage::delete`].
    fn delete_existing(
        &self,
        key: &Key,
        expected: Revision,
        existing: Payload,
    ) -> BoxFuture<'_, Result<Revision, WriteError>> {
        // An engine that needs no read for it.
        drop(existing);
        self.delete(key, expected)
    }

    /// Reads one key's latest value, linearizably.
    ///
    /// # Errors
    /// When the engine cannot read: it is closed, damaged or unavailable.
    fn get(&self, key: &Key) -> BoxFuture<'_, Result<GetResponse, StorageError>>;

    /// Reads a range of keys at one revision.
    ///
    /// # Errors
    /// [`StorageError::Compacted`] when `revision` is compacted, [`StorageError::FutureRevision`] when it has not
    /// been reached yet.
    fn get_list(&self, request: ListRequest) -> BoxFuture<'_, Result<ListResponse, StorageError>>;

    /// The number of keys of a range at one revision. Reads no values; the limit of the request has no effect. An engine
    /// may walk the keys of the range for it.
    ///
    /// # Errors
    /// As [`Storage::get_list`].
    fn count(&self, request: ListRequest) -> BoxFuture<'_, Result<usize, StorageError>>;

    /// Watches the writes to a prefix after a revision. Every write after `request.after` is delivered exactly once,
    /// in revision order, when it is durable; writes before the call come from history. A write reaches the watches
    /// before it is acknowledged to its writer. `request.after` may be a revision that has not been reached yet.
    ///
    /// # Errors
    /// [`StorageError::Compacted`] when `request.after` is older than the compaction.
    fn watch(&self, request: WatchRequest) -> BoxFuture<'_, Result<WatchStream, StorageError>>;

    /// The latest acknowledged revision, linearizably: not older than any write acknowledged before the call.
    ///
    /// # Errors
    /// When the engine is closed or unavailable.
    fn current_revision(&self) -> BoxFuture<'_, Result<Revision, StorageError>>;

    /// Requests a [`StorageEvent::Progress`](crate::StorageEvent::Progress) for every open watch, with a revision not older than the store's current
    /// one, after all events up to it. Returns without waiting for the events.
    ///
    /// # Errors
    /// When the engine is closed or unavailable.
    fn request_progress(&self) -> BoxFuture<'_, Result<(), StorageError>>;

    /// Drops history before `revision`: reads and watches from before it fail with [`StorageError::Compacted`]. The
    /// latest value of every key is kept. Compacting at a revision that is compacted already has no effect.
    ///
    /// # Errors
    /// [`StorageError::FutureRevision`] when `revision` has not been reached yet.
    fn compact(&self, revision: Revision) -> BoxFuture<'_, Result<(), StorageError>>;

    /// The oldest readable revision, as far as this engine knows: another server may have compacted a shared store
    /// meanwhile. Zero when it knows of no compaction.
    fn compacted_revision(&self) -> Revision {
        Revision(0)
    }

    /// Runs one round of the periodic compaction: drops the history before the caller's last round, one interval ago,
    /// and returns the state for the next round. Where several servers share a store, one of them compacts.
    ///
    /// # Errors
    /// When the round failed; the caller continues with the round it has.
    fn compact_periodically(
        &self,
        last: CompactionRound,
    ) -> BoxFuture<'_, Result<CompactionRound, StorageError>>;

    /// Checks that the engine can serve reads and writes.
    ///
    /// # Errors
    /// The failure that prevents it.
    fn health(&self) -> BoxFuture<'_, Result<(), StorageError>>;

    /// The size of the data on its medium, in bytes, as `apiserver_storage_size_bytes` reports it.
    ///
    /// # Errors
    /// When the engine is closed or unavailable.
    fn size(&self) -> BoxFuture<'_, Result<u64, StorageError>>;

    /// Ends open watches, finishes accepted writes, syncs and closes. Later calls fail with [`StorageError::Closed`];
    /// a second `close` has no effect.
    ///
    /// # Errors
    /// When an accepted write or a sync failed.
    fn close(&self) -> BoxFuture<'_, Result<(), StorageError>>;
}
