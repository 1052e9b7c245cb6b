//! What a restore needs of an engine.

use super::now_milliseconds;
use crate::{
    BoxFuture, Key, KeyValue, ListRequest, ListResponse, Revision, Storage, StorageError, WriteError,
};
use bytes::Bytes;
use std::time::Duration;

/// The shortest time to live that etcd knows.
const SHORTEST: Duration = Duration::from_secs(1);

/// An engine that a snapshot is restored into. Every [`Storage`] is one; an engine may have cheaper ways.
///
/// A restore looks at all it has written in the end, so whoever is not sure whether a write has happened repeats it.
pub trait RestoreTarget: Send + Sync + 'static {
    /// One key's newest value.
    ///
    /// # Errors
    /// Those of the engine, here and below.
    fn read<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<KeyValue>, StorageError>>;

    /// A range of keys, as [`Storage::get_list`] reads it.
    ///
    /// # Errors
    /// As [`Storage::get_list`].
    fn list(&self, request: ListRequest) -> BoxFuture<'_, Result<ListResponse, StorageError>>;

    /// The newest revision.
    ///
    /// # Errors
    /// Those of the engine.
    fn revision(&self) -> BoxFuture<'_, Result<Revision, StorageError>>;

    /// Writes a key that does not exist; one that exists stays as it is. `expires` is in milliseconds since 1970, 0 for
    /// never; the key may live some seconds longer.
    ///
    /// # Errors
    /// Those of the engine.
    fn create_key<'a>(
        &'a self,
        key: &'a Key,
        value: Bytes,
        expires: u64,
    ) -> BoxFuture<'a, Result<(), StorageError>>;

    /// Writes a key for nothing but the revision that the write takes, at least one.
    ///
    /// # Errors
    /// Those of the engine.
    fn touch<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<(), StorageError>>;

    /// Deletes a key, whatever it is.
    ///
    /// # Errors
    /// Those of the engine.
    fn remove<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<(), StorageError>>;

    /// Forgets history before `revision`.
    ///
    /// # Errors
    /// As [`Storage::compact`].
    fn compact_history(&self, revision: Revision) -> BoxFuture<'_, Result<(), StorageError>>;
}

impl<S: Storage + ?Sized> RestoreTarget for S {
    fn read<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<KeyValue>, StorageError>> {
        Box::pin(async move { Ok(self.get(key).await?.kv) })
    }

    fn list(&self, request: ListRequest) -> BoxFuture<'_, Result<ListResponse, StorageError>> {
        self.get_list(request)
    }

    fn revision(&self) -> BoxFuture<'_, Result<Revision, StorageError>> {
        self.current_revision()
    }

    fn create_key<'a>(
        &'a self,
        key: &'a Key,
        value: Bytes,
        expires: u64,
    ) -> BoxFuture<'a, Result<(), StorageError>> {
        Box::pin(async move {
            let left = Duration::from_millis(expires.saturating_sub(now_milliseconds())).max(SHORTEST);
            done(self.create(key, value, (expires != 0).then_some(left)).await).map(drop)
        })
    }

    fn touch<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<(), StorageError>> {
        Box::pin(async move {
            loop {
                let written = match self.get(key).await?.kv {
                    None => self.create(key, Bytes::new(), None).await,
                    Some(kv) => self.update(key, Bytes::new(), kv.mod_revision, None).await,
                };
                if done(written)? {
                    return Ok(());
                }
            }
        })
    }

    fn remove<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<(), StorageError>> {
        Box::pin(async move {
            while let Some(kv) = self.get(key).await?.kv {
                done(self.delete(key, kv.mod_revision).await)?;
            }
            Ok(())
        })
    }

    fn compact_history(&self, revision: Revision) -> BoxFuture<'_, Result<(), StorageError>> {
        self.compact(revision)
    }
}

/// Whether a write was made; somebody else's may have been in its way.
fn done(written: Result<Revision, WriteError>) -> Result<bool, StorageError> {
    match written {
        Ok(_) => Ok(true),
        Err(WriteError::KeyExists | WriteError::Conflict { .. }) => Ok(false),
        Err(WriteError::Storage(error)) => Err(error),
        Err(WriteError::Transform(error)) => Err(StorageError::Engine(error.to_string())),
    }
}
