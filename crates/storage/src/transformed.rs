//! A storage engine behind a chain of [`ValueTransformer`]s.
//!
//! One unreadable value must not make the others unavailable: a value that cannot be transformed back is returned in
//! its stored form, with the reason in [`ValueState::Unreadable`]. A value that cannot be transformed *to* storage
//! fails its write.
//!
//! **Own writes.** The event of a write of this process returns the bytes that were written, not a copy decoded from
//! the stored form: [`OwnWrites`] keeps both for the short time between write and event. It is only an optimization;
//! a dropped entry is transformed back.

use crate::{
    BoxFuture, CompactionRound, GetResponse, Key, KeyValue, ListRequest, ListResponse, ReadError, Revision,
    Storage, StorageError, StorageEvent, Transformed, ValueState, ValueTransformer, WatchReceiver,
    WatchRequest, WatchStream, WriteError,
};
use bytes::Bytes;
use parking_lot::Mutex;
use std::{
    collections::VecDeque,
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

/// A [`Storage`] that transforms values before it stores them in another one.
pub struct TransformedStorage {
    engine: Arc<dyn Storage>,
    row: Arc<Row>,
}

impl TransformedStorage {
    /// Wraps `engine` in the transformers. Values pass through them first to last, and back last to first.
    pub fn new(engine: Arc<dyn Storage>, transformers: Vec<Arc<dyn ValueTransformer>>) -> TransformedStorage {
        let stores_values_as_they_are =
            transformers.iter().all(|transformer| transformer.stores_values_as_they_are());
        let own_writes = OwnWrites::default();
        TransformedStorage {
            engine,
            row: Arc::new(Row { transformers, stores_values_as_they_are, own_writes }),
        }
    }

    /// Transforms the value, and remembers it until its event arrives.
    async fn begin_write(&self, key: &Key, value: Bytes) -> Result<Bytes, WriteError> {
        if self.row.passes(&value) {
            return Ok(value);
        }
        let stored = self.row.to_storage(key, value.clone()).await?;
        self.row.own_writes.remember(key, &stored, value);
        Ok(stored)
    }

    /// Handles the outcome of a write.
    async fn end_write(
        &self,
        key: &Key,
        stored: &Bytes,
        result: Result<Revision, WriteError>,
    ) -> Result<Revision, WriteError> {
        match result {
            // The write did not happen, so no event will follow. After other failures that is unknown.
            Err(WriteError::KeyExists) => {
                self.row.own_writes.take(key, stored);
                Err(WriteError::KeyExists)
            }
            Err(WriteError::Conflict { current }) => {
                self.row.own_writes.take(key, stored);
                Err(WriteError::Conflict { current: self.row.read_optional(current).await })
            }
            result => result,
        }
    }
}

impl Storage for TransformedStorage {
    fn create(
        &self,
        key: &Key,
        value: Bytes,
        ttl: Option<Duration>,
    ) -> BoxFuture<'_, Result<Revision, WriteError>> {
        if self.row.passes(&value) {
            return self.engine.create(key, value, ttl);
        }
        let key = key.clone();
        Box::pin(async move {
            let stored = self.begin_write(&key, value).await?;
            let result = self.engine.create(&key, stored.clone(), ttl).await;
            self.end_write(&key, &stored, result).await
        })
    }

    fn update(
        &self,
        key: &Key,
        value: Bytes,
        expected: Revision,
        ttl: Option<Duration>,
    ) -> BoxFuture<'_, Result<Revision, WriteError>> {
        let key = key.clone();
        Box::pin(async move {
            let stored = self.begin_write(&key, value).await?;
            let result = self.engine.update(&key, stored.clone(), expected, ttl).await;
            self.end_write(&key, &stored, result).await
        })
    }

    fn delete(&self, key: &Key, expected: Revision) -> BoxFuture<'_, Result<Revision, WriteError>> {
        let key = key.clone();
        Box::pin(async move {
            match self.engine.delete(&key, expected).await {
                Err(WriteError::Conflict { current }) => {
                    Err(WriteError::Conflict { current: self.row.read_optional(current).await })
                }
                result => result,
            }
        })
    }

    fn get(&self, key: &Key) -> BoxFuture<'_, Result<GetResponse, StorageError>> {
        let key = key.clone();
        Box::pin(async move {
            let GetResponse { kv, revision } = self.engine.get(&key).await?;
            Ok(GetResponse { kv: self.row.read_optional(kv).await, revision })
        })
    }

    fn get_list(&self, request: ListRequest) -> BoxFuture<'_, Result<ListResponse, StorageError>> {
        Box::pin(async move {
            let mut response = self.engine.get_list(request).await?;
            for kv in &mut response.items {
                self.row.read(kv).await;
            }
            Ok(response)
        })
    }

    fn watch(&self, request: WatchRequest) -> BoxFuture<'_, Result<WatchStream, StorageError>> {
        Box::pin(async move {
            let stream = self.engine.watch(request).await?;
            let row = self.row.clone();
            let stream = TransformedWatch { stream, row, batch: Vec::new(), read: 0 };
            Ok(Box::new(stream) as WatchStream)
        })
    }

    fn current_revision(&self) -> BoxFuture<'_, Result<Revision, StorageError>> {
        self.engine.current_revision()
    }

    fn request_progress(&self) -> BoxFuture<'_, Result<(), StorageError>> {
        self.engine.request_progress()
    }

    fn compact(&self, revision: Revision) -> BoxFuture<'_, Result<(), StorageError>> {
        self.engine.compact(revision)
    }

    fn compact_periodically(
        &self,
        last: CompactionRound,
    ) -> BoxFuture<'_, Result<CompactionRound, StorageError>> {
        self.engine.compact_periodically(last)
    }

    fn health(&self) -> BoxFuture<'_, Result<(), StorageError>> {
        self.engine.health()
    }

    fn compacted_revision(&self) -> Revision {
        self.engine.compacted_revision()
    }

    fn size(&self) -> BoxFuture<'_, Result<u64, StorageError>> {
        self.engine.size()
    }

    fn close(&self) -> BoxFuture<'_, Result<(), StorageError>> {
        self.engine.close()
    }
}

/// The transformers, and the latest writes through them.
struct Row {
    transformers: Vec<Arc<dyn ValueTransformer>>,
    stores_values_as_they_are: bool,
    own_writes: OwnWrites,
}

impl Row {
    /// Whether the value is stored unchanged and read back without a transformation.
    fn passes(&self, value: &[u8]) -> bool {
        self.stores_values_as_they_are
            && self.transformers.iter().all(|transformer| transformer.is_plain(value))
    }

    async fn to_storage(&self, key: &Key, mut value: Bytes) -> Result<Bytes, WriteError> {
        for transformer in &self.transformers {
            value = transformer.to_storage(key, value).await.map_err(WriteError::Transform)?;
        }
        Ok(value)
    }

    async fn transform_back(&self, key: &Key, mut value: Bytes) -> Result<Transformed, ReadError> {
        let mut stale = false;
        for transformer in self.transformers.iter().rev() {
            if transformer.is_plain(&value) {
                continue;
            }
            let transformed = transformer.from_storage(key, value).await;
            let transformed = transformed.map_err(|error| transformer.read_error(error))?;
            value = transformed.value;
            stale |= transformed.stale;
        }
        Ok(Transformed { value, stale })
    }

    /// Transforms the pair's value back.
    async fn read(&self, kv: &mut KeyValue) {
        match self.transform_back(&kv.key, kv.value.clone()).await {
            Ok(Transformed { value, stale }) => {
                kv.value = value;
                if stale {
                    kv.state = ValueState::Stale;
                }
            }
            Err(error) => kv.state = ValueState::Unreadable(error),
        }
    }

    async fn read_optional(&self, mut kv: Option<KeyValue>) -> Option<KeyValue> {
        if let Some(kv) = &mut kv {
            self.read(kv).await;
        }
        kv
    }
}

/// A watch whose values are transformed back.
struct TransformedWatch {
    stream: WatchStream,
    row: Arc<Row>,
    /// Events of the engine that were not returned yet; the first `read` of them are transformed. A dropped call
    /// leaves them here for the next.
    batch: Vec<StorageEvent>,
    read: usize,
}

impl WatchReceiver for TransformedWatch {
    fn next_batch(&mut self) -> BoxFuture<'_, Option<Vec<StorageEvent>>> {
        Box::pin(async move {
            if self.batch.is_empty() {
                self.batch = self.stream.next_batch().await?;
                self.read = 0;
            }
            while let Some(event) = self.batch.get_mut(self.read) {
                if let StorageEvent::Write { kv, .. } = event {
                    match self.row.own_writes.take(&kv.key, &kv.value) {
                        Some(value) => kv.value = value,
                        None => self.row.read(kv).await,
                    }
                }
                self.read += 1;
            }
            Some(std::mem::take(&mut self.batch))
        })
    }

    fn queued_revision(&self) -> Option<Arc<AtomicU64>> {
        self.stream.queued_revision()
    }
}

/// Recent writes: the key, the stored bytes, and the value.
#[derive(Default)]
struct OwnWrites(Mutex<VecDeque<(Key, Bytes, Bytes)>>);

impl OwnWrites {
    /// The number of writes that are remembered, in items.
    const KEPT: usize = 256;
    /// The size of the largest stored value that is remembered, in bytes.
    const BYTES_KEPT: usize = 64 * 1024;

    fn remember(&self, key: &Key, stored: &Bytes, value: Bytes) {
        if stored.len() > Self::BYTES_KEPT {
            return;
        }
        let mut writes = self.0.lock();
        if writes.len() >= Self::KEPT {
            writes.pop_front();
        }
        writes.push_back((key.clone(), stored.clone(), value));
    }

    fn take(&self, key: &Key, stored: &Bytes) -> Option<Bytes> {
        let mut writes = self.0.lock();
        let at = writes.iter().position(|(of, bytes, _)| bytes == stored && of == key)?;
        writes.remove(at).map(|(_, _, value)| value)
    }
}

#[cfg(test)]
mod tests;
