//! A store that makes writes and does not answer them.

use pintle_storage::{
    BoxFuture, CompactionRound, GetResponse, Key, ListRequest, ListResponse, MemoryStorage, Payload,
    Revision, Storage, StorageError, WatchRequest, WatchStream, WriteError,
};
use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

pub(super) struct UnansweringStorage {
    inner: MemoryStorage,
    pub(super) is_silent: AtomicBool,
}

impl UnansweringStorage {
    pub(super) fn new() -> UnansweringStorage {
        UnansweringStorage { inner: MemoryStorage::new(), is_silent: AtomicBool::new(false) }
    }

    async fn answer(
        &self,
        write: BoxFuture<'_, Result<Revision, WriteError>>,
    ) -> Result<Revision, WriteError> {
        let written = write.await;
        match self.is_silent.load(Ordering::Acquire) {
            true => Err(StorageError::Engine("the connection was lost".to_owned()).into()),
            false => written,
        }
    }
}

impl Storage for UnansweringStorage {
    fn create(
        &self,
        key: &Key,
        value: Payload,
        ttl: Option<Duration>,
    ) -> BoxFuture<'_, Result<Revision, WriteError>> {
        self.inner.create(key, value, ttl)
    }

    fn update(
        &self,
        key: &Key,
        value: Payload,
        expected: Revision,
        ttl: Option<Duration>,
    ) -> BoxFuture<'_, Result<Revision, WriteError>> {
        Box::pin(self.answer(self.inner.update(key, value, expected, ttl)))
    }

    fn delete(&self, key: &Key, expected: Revision) -> BoxFuture<'_, Result<Revision, WriteError>> {
        self.inner.delete(key, expected)
    }

    fn delete_existing(
        &self,
        key: &Key,
        expected: Revision,
        existing: Payload,
    ) -> BoxFuture<'_, Result<Revision, WriteError>> {
        Box::pin(self.answer(self.inner.delete_existing(key, expected, existing)))
    }

    fn get(&self, key: &Key) -> BoxFuture<'_, Result<GetResponse, StorageError>> {
        self.inner.get(key)
    }

    fn get_list(&self, request: ListRequest) -> BoxFuture<'_, Result<ListResponse, StorageError>> {
        self.inner.get_list(request)
    }

    fn count(&self, request: ListRequest) -> BoxFuture<'_, Result<usize, StorageError>> {
        self.inner.count(request)
    }

    fn watch(&self, request: WatchRequest) -> BoxFuture<'_, Result<WatchStream, StorageError>> {
        self.inner.watch(request)
    }

    fn current_revision(&self) -> BoxFuture<'_, Result<Revision, StorageError>> {
        self.inner.current_revision()
    }

    fn request_progress(&self) -> BoxFuture<'_, Result<(), StorageError>> {
        self.inner.request_progress()
    }

    fn compact(&self, revision: Revision) -> BoxFuture<'_, Result<(), StorageError>> {
        self.inner.compact(revision)
    }

    fn compact_periodically(
        &self,
        last: CompactionRound,
    ) -> BoxFuture<'_, Result<CompactionRound, StorageError>> {
        self.inner.compact_periodically(last)
    }

    fn health(&self) -> BoxFuture<'_, Result<(), StorageError>> {
        self.inner.health()
    }

    fn compacted_revision(&self) -> Revision {
        self.inner.compacted_revision()
    }

    fn size(&self) -> BoxFuture<'_, Result<u64, StorageError>> {
        self.inner.size()
    }

    fn close(&self) -> BoxFuture<'_, Result<(), StorageError>> {
        self.inner.close()
    }
}
