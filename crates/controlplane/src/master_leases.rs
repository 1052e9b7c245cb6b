//! Tracks the running servers of a store: each renews a key with its address, which expires when the server stops.
//!
//! The keys have kube-apiserver's format (`/registry/masterleases/ADDRESS`, an `Endpoints` of one address), so that
//! both kinds of servers see each other.

use pintle_machinery::{Status, Value, ValueExt, meta::ObjectMeta};
use pintle_storage::{Key, KeyValue, ListRequest, Storage, ValueState, WriteError};
use serde_json::json;
use std::{collections::BTreeSet, fmt, net::IpAddr, sync::Arc, time::Duration};

/// The lifetime of a lease; longer than the interval between renewals.
const TTL: Duration = Duration::from_secs(15);

/// The leases in a store.
#[derive(Clone)]
pub struct MasterLeases {
    storage: Arc<dyn Storage>,
    prefix: String,
}

impl MasterLeases {
    /// Creates the leases below a prefix that ends with a slash. The storage must encode JSON.
    pub fn new(storage: Arc<dyn Storage>, prefix: impl Into<String>) -> MasterLeases {
        MasterLeases { storage, prefix: prefix.into() }
    }

    /// The addresses with a valid lease.
    pub(crate) async fn list(&self) -> Result<BTreeSet<IpAddr>, Status> {
        let request =
            ListRequest { prefix: self.prefix.clone(), start_after: None, limit: 0, revision: None };
        let leases = self.storage.get_list(request).await.map_err(Status::internal_error)?;
        Ok(leases.items.iter().filter_map(address).collect())
    }

    /// Creates or renews the lease of this address.
    pub(crate) async fn renew(&self, own: IpAddr) -> Result<(), Status> {
        let key = self.key(own);
        let mut current = self.read(&key).await?;
        loop {
            // An unreadable value is overwritten.
            let before = current.as_ref().and_then(decode).unwrap_or_default();
            // The counter makes every write change the value.
            let generation = before.generation().saturating_add(1);
            let lease = json!({
                "kind": "Endpoints",
                "apiVersion": "v1",
                "metadata": {"generation": generation},
                "subsets": [{"addresses": [{"ip": own.to_string()}]}],
            });
            let value = lease.to_string().into();
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

    /// Removes the lease of this address.
    pub(crate) async fn remove(&self, own: IpAddr) -> Result<(), Status> {
        let key = self.key(own);
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

    fn key(&self, address: IpAddr) -> Key {
        Key::new(format!("{}{address}", self.prefix))
    }

    async fn read(&self, key: &Key) -> Result<Option<KeyValue>, Status> {
        Ok(self.storage.get(key).await.map_err(Status::internal_error)?.kv)
    }
}

impl fmt::Debug for MasterLeases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MasterLeases").field("prefix", &self.prefix).finish_non_exhaustive()
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

fn address(kv: &KeyValue) -> Option<IpAddr> {
    let lease = decode(kv)?;
    lease.items_at("subsets").first()?.items_at("addresses").first()?.str_at("ip").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_registry::testing::now;
    use pintle_storage::MemoryStorage;

    #[tokio::test]
    async fn servers_count_each_other() {
        let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
        let leases = MasterLeases::new(storage.clone(), "/registry/masterleases/");
        let [one, two]: [IpAddr; 2] = ["10.0.0.10".parse().unwrap(), "10.0.0.9".parse().unwrap()];
        now(leases.renew(one)).unwrap();
        now(leases.renew(two)).unwrap();
        now(leases.renew(one)).unwrap();
        assert_eq!(now(leases.list()).unwrap(), BTreeSet::from([one, two]));
        let stored = now(storage.get(&Key::new("/registry/masterleases/10.0.0.10"))).unwrap().kv.unwrap();
        assert_eq!(
            decode(&stored).unwrap(),
            json!({
                "kind": "Endpoints", "apiVersion": "v1", "metadata": {"generation": 2},
                "subsets": [{"addresses": [{"ip": "10.0.0.10"}]}]
            })
        );
        now(leases.remove(one)).unwrap();
        now(leases.remove(one)).unwrap();
        assert_eq!(now(leases.list()).unwrap(), BTreeSet::from([two]));
    }

    #[tokio::test]
    async fn what_is_no_lease_is_no_server() {
        let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
        let leases = MasterLeases::new(storage.clone(), "/registry/masterleases/");
        for (name, value) in [("10.0.0.1", "junk"), ("10.0.0.2", "{}"), ("10.0.0.3", r#"{"subsets":[{}]}"#)] {
            let key = Key::new(format!("/registry/masterleases/{name}"));
            now(storage.create(&key, value.to_owned().into(), None)).unwrap();
        }
        assert_eq!(now(leases.list()).unwrap(), BTreeSet::new());
        let own = "10.0.0.1".parse().unwrap();
        now(leases.renew(own)).unwrap();
        assert_eq!(now(leases.list()).unwrap(), BTreeSet::from([own]));
    }
}
