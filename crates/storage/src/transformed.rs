//! A storage engine behind a chain of [`ValueTransformer`]s.
//!
//! One unreadable value must not make the others unavailable: a value that cannot be transformed back is returned in
//! its stored form, with the reason in [`ValueState::Unreadable`]. A value that cannot be transformed *to* storage
//! fails its write.
//!
//! **Own writes.** The event of a write of this process has the value that was written, not one decoded from the stored
//! form: the [`Payload`] carries both through the engine.

use crate::{
    BoxFuture, CompactionRound, GetResponse, Key, KeyValue, ListRequest, ListResponse, Payload, ReadError,
    Revision, Storage, StorageError, StorageEvent, Transformed, ValueState, ValueTransformer, WatchReceiver,
    WatchRequest, WatchStream, WriteError,
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
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
        static LAST_ID: AtomicU64 = AtomicU64::new(0);
        let id = LAST_ID.fetch_add(1, Ordering::Relaxed) + 1;
        TransformedStorage { engine, row: Arc::new(Row { id, transformers, stores_values_as_they_are }) }
    }

    /// Reads the pair of a conflict.
    async fn read_conflict(&self, error: WriteError) -> WriteError {
        match error {
            WriteError::Conflict { current } => {
                WriteError::Conflict { current: self.row.read_optional(current).await }
            }
            error => error,
        }
    }
}

impl Storage for TransformedStorage {
    fn create(
        &self,
        key: &Key,
        value: Payload,
        ttl: Option<Duration>,
    ) -> BoxFuture<'_, Result<Revision, WriteError>> {
        if self.row.passes(&value) {
            return self.engine.create(key, Payload { writer: self.row.id, ..value }, ttl);
        }
        let key = key.clone();
        Box::pin(async move {
            let value = self.row.to_storage(&key, value).await?;
            self.engine.create(&key, value, ttl).await
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
            let value = self.row.to_storage(&key, value).await?;
            match self.engine.update(&key, value, expected, ttl).await {
                Err(error) => Err(self.read_conflict(error).await),
                result => result,
            }
        })
    }

    fn delete(&self, key: &Key, expected: Revision) -> BoxFuture<'_, Result<Revision, WriteError>> {
        let key = key.clone();
        Box::pin(async move {
            match self.engine.delete(&key, expected).await {
                Err(error) => Err(self.read_conflict(error).await),
                result => result,
            }
        })
    }

    fn delete_existing(
        &self,
        key: &Key,
        expected: Revision,
        existing: Payload,
    ) -> BoxFuture<'_, Result<Revision, WriteError>> {
        let key = key.clone();
        // Its stored form is not known, and not needed: the event of the deletion gets the value without it.
        let stored = Some(existing.bytes.clone());
        let existing = Payload { stored, decoded: None, writer: self.row.id, ..existing };
        Box::pin(async move {
            match self.engine.delete_existing(&key, expected, existing).await {
                Err(error) => Err(self.read_conflict(error).await),
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

    fn count(&self, request: ListRequest) -> BoxFuture<'_, Result<usize, StorageError>> {
        self.engine.count(request)
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

/// The transformers.
struct Row {
    /// The number of this storage in the process; never 0.
    id: u64,
    transformers: Vec<Arc<dyn ValueTransformer>>,
    stores_values_as_they_are: bool,
}

impl Row {
    /// Whether the value is stored unchanged and read back without a transformation.
    fn passes(&self, value: &Payload) -> bool {
        self.stores_values_as_they_are
            && value.stored.is_none()
            && self.transformers.iter().all(|transformer| transformer.is_plain(value))
    }

    /// Adds the stored form of a value, which may have passed the first transformer already.
    async fn to_storage(&self, key: &Key, mut value: Payload) -> Result<Payload, WriteError> {
        value.writer = self.id;
        if self.passes(&value) {
            return Ok(value);
        }
        let mut transformers = self.transformers.iter();
        let mut stored = match value.stored.take() {
            Some(stored) => {
                transformers.next();
                stored
            }
            None => value.bytes.clone(),
        };
        for transformer in transformers {
            stored = transformer.to_storage(key, stored).await.map_err(WriteError::Transform)?;
        }
        value.stored = Some(stored);
        Ok(value)
    }

    /// Transforms a stored form back into the value. Leaves a value that needs no transformation as it is.
    async fn transform_back(&self, key: &Key, mut value: Payload) -> Result<Transformed, ReadError> {
        let mut stale = false;
        for transformer in self.transformers.iter().rev() {
            if transformer.is_plain(&value) {
                continue;
            }
            let transformed = transformer.from_storage(key, value.bytes).await;
            let transformed = transformed.map_err(|error| transformer.read_error(error))?;
            value = transformed.value;
            stale |= transformed.stale;
        }
        Ok(Transformed { value, stale })
    }

    /// Transforms the pair's value back, unless it was written through this storage in this process.
    async fn read(&self, kv: &mut KeyValue) {
        if kv.value.writer != self.id {
            kv.value.keep_stored_form();
        } else if kv.value.stored.take().is_some() {
            return;
        }
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
                    self.row.read(kv).await;
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

#[cfg(test)]
mod tests;
