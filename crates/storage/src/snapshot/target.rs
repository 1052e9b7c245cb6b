//! The interface of an engine that a snapshot is restored into.

use super::now_milliseconds;
use crate::{
    BoxFuture, Key, KeyValue, ListRequest, ListResponse, Revision, Storage, StorageError, WriteError,
};
use bytes::Bytes;
use std::time::Duration;

/// The shortest time to live of an etcd lease.
const SHORTEST: Duration = Duration::from_secs(1);

/// An engine that a snapshot is restored into. Every [`Storage`] implements it; an engine may have a cheaper
/// implementation.
///
/// A restore compares all keys at the end, so a write with an unknown outcome may be repeated.
pub trait RestoreTarget: Send + Sync + 'static {
    /// Reads one key's latest value.
    ///
    /// # Errors
    /// The errors of the engine.
    fn read<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<KeyValue>, StorageError>>;

    /// Reads a range of keys, like [`Storage::get_list`].
    ///
    /// # Errors
    /// As [`Storage::get_list`].
    fn list(&self, request: ListRequest) -> BoxFuture<'_, Result<ListResponse, StorageError>>;

    /// The latest revision.
    ///
    /// # Errors
    /// The errors of the engine.
    fn revision(&self) -> BoxFuture<'_, Result<Revision, StorageError>>;

    /// Writes a key that does not exist; an existing key is left unchanged. `expires` is in milliseconds since 1970,
    /// 0 for never; the key may be deleted some seconds later.
    ///
    /// # Errors
    /// The errors of the engine.
    fn create_key<'a>(
        &'a self,
        key: &'a Key,
        value: Bytes,
        expires: u64,
    ) -> BoxFuture<'a, Result<(), StorageError>>;

    /// Writes a key only to use a revision, or more than one.
    ///
    /// # Errors
    /// The errors of the engine.
    fn touch<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<(), StorageError>>;

    /// Deletes a key, whatever its revision; no effect if it does not exist.
    ///
    /// # Errors
    /// The errors of the engine.
    fn remove<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<(), StorageError>>;

    /// Drops history before `revision`.
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
            done(self.create(key, value.into(), (expires != 0).then_some(left)).await).map(drop)
        })
    }

    fn touch<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<(), StorageError>> {
        Box::pin(async move {
            loop {
                let written = match self.get(key).await?.kv {
                    None => self.create(key, Bytes::new().into(), None).await,
                    Some(kv) => self.update(key, Bytes::new().into(), kv.mod_revision, None).await,
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

/// Whether a write was made; a concurrent write may have prevented it.
fn done(written: Result<Revision, WriteError>) -> Result<bool, StorageError> {
    match written {
        Ok(_) => Ok(true),
        Err(WriteError::KeyExists | WriteError::Conflict { .. }) => Ok(false),
        Err(WriteError::Storage(error)) => Err(error),
        Err(WriteError::Transform(error)) => Err(StorageError::Engine(error.to_string())),
    }
}
