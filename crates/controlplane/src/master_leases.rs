//! Tracks the running servers of a store: each renews a key with its address, which expires when the server stops.
//!
//! The keys have kube-apiserver's format (`/registry/masterleases/ADDRESS`, an `Endpoints` of one address), so that
//! both kinds of servers see each other.

use crate::server_leases::ServerLeases;
use pintle_machinery::{Status, Value, ValueExt, json};
use pintle_storage::Storage;
use std::{collections::BTreeSet, net::IpAddr, sync::Arc};

/// The leases in a store.
#[derive(Debug, Clone)]
pub struct MasterLeases(ServerLeases);

impl MasterLeases {
    /// Creates the leases below a prefix that ends with a slash. The storage must encode JSON.
    pub fn new(storage: Arc<dyn Storage>, prefix: impl Into<String>) -> MasterLeases {
        MasterLeases(ServerLeases::new(storage, prefix))
    }

    /// The addresses with a valid lease.
    pub(crate) async fn list(&self) -> Result<BTreeSet<IpAddr>, Status> {
        Ok(self.0.list().await?.values().filter_map(address).collect())
    }

    /// Creates or renews the lease of this address.
    pub(crate) async fn renew(&self, own: IpAddr) -> Result<(), Status> {
        let lease = |generation| {
            json!({
                "kind": "Endpoints",
                "apiVersion": "v1",
                "metadata": {"generation": generation},
                "subsets": [{"addresses": [{"ip": own.to_string()}]}],
            })
        };
        self.0.renew(&own.to_string(), lease).await
    }

    /// Removes the lease of this address.
    pub(crate) async fn remove(&self, own: IpAddr) -> Result<(), Status> {
        self.0.remove(&own.to_string()).await
    }
}

fn address(lease: &Value) -> Option<IpAddr> {
    lease.items_at("subsets").first()?.items_at("addresses").first()?.str_at("ip").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_registry::testing::now;
    use pintle_storage::{Key, MemoryStorage};

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
            serde_json::from_slice::<Value>(&stored.value).unwrap(),
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
