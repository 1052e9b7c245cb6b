//! Leases of the running servers of a store, outside the API: each server renews a key, which expires when the server
//! stops. The values are JSON objects in the form of kube-apiserver's leases, an `Endpoints` of one address.

use pintle_machinery::{Status, Value, meta::ObjectMeta};
use pintle_storage::{Key, KeyValue, ListRequest, Storage, ValueState, WriteError};
use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

/// The lifetime of a lease; longer than the interval between renewals.
const TTL: Duration = Duration::from_secs(15);
/// The maximum number of leases that are read.
const MOST: usize = 1000;

/// The leases below one prefix.
#[derive(Clone)]
pub struct ServerLeases {
    storage: Arc<dyn Storage>,
    prefix: String,
}

impl ServerLeases {
    /// Creates the leases below a prefix that ends with a slash. The storage must encode JSON.
    pub fn new(storage: Arc<dyn Storage>, prefix: impl Into<String>) -> ServerLeases {
        ServerLeases { storage, prefix: prefix.into() }
    }

    /// The readable leases, by name; no more than a thousand.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn list(&self) -> Result<BTreeMap<String, Value>, Status> {
        let request =
            ListRequest { prefix: self.prefix.clone(), start_after: None, limit: MOST, revision: None };
        let leases = self.storage.get_list(request).await.map_err(Status::internal_error)?;
        let named = |kv: &KeyValue| {
            let name = kv.key.as_str().strip_prefix(&self.prefix)?.to_owned();
            Some((name, decode(kv)?))
        };
        Ok(leases.items.iter().filter_map(named).collect())
    }

    /// The lease of this name; `None` if there is none that is readable.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn get(&self, name: &str) -> Result<Option<Value>, Status> {
        Ok(self.read(&self.key(name)).await?.as_ref().and_then(decode))
    }

    /// Creates or renews the lease of this name. Its value is made from a counter, its `metadata.generation`, which makes
    /// every write change the value.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn renew(&self, name: &str, lease: impl Fn(i64) -> Value) -> Result<(), Status> {
        let key = self.key(name);
        let mut current = self.read(&key).await?;
        loop {
            // An unreadable value is overwritten.
            let before = current.as_ref().and_then(decode).unwrap_or_default();
            let value = lease(before.generation().saturating_add(1)).to_string().into();
            let written = match &current {
                Some(kv) => self.storage.update(&key, value, kv.mod_revision, Some(TTL)).await,
                None => self.storage.create(&key, value, Some(TTL)).await,
            };
            current = match written {
                Ok(_) => return Ok(()),
                Err(WriteError::Conflict { current }) => current,
                Err(WriteError::KeyExists) => self.read(&key).await?,
                Err(error) => return Err(Status::internal_error(error)),
            };
        }
    }

    /// Removes the lease of this name.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn remove(&self, name: &str) -> Result<(), Status> {
        let key = self.key(name);
        let mut current = self.read(&key).await?;
        while let Some(kv) = current {
            current = match self.storage.delete(&key, kv.mod_revision).await {
                Ok(_) => None,
                Err(WriteError::Conflict { current }) => current,
                Err(error) => return Err(Status::internal_error(error)),
            };
        }
        Ok(())
    }

    fn key(&self, name: &str) -> Key {
        Key::new(format!("{}{name}", self.prefix))
    }

    async fn read(&self, key: &Key) -> Result<Option<KeyValue>, Status> {
        Ok(self.storage.get(key).await.map_err(Status::internal_error)?.kv)
    }
}

impl fmt::Debug for ServerLeases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerLeases").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

fn decode(kv: &KeyValue) -> Option<Value> {
    match &kv.state {
        ValueState::Unreadable(error) => {
            tracing::warn!(key = %kv.key, %error, "the lease of a server cannot be read");
            None
        }
        ValueState::Current | ValueState::Stale => serde_json::from_slice(&kv.value).ok(),
    }
}
