//! The addresses of the servers of a store: each renews a lease with its own.
//!
//! The keys have kube-apiserver's format (`/registry/peerserverleases/ID`, an `Endpoints` of one address).

use pintle_controlplane::{Controller, ServerLeases};
use pintle_machinery::{Status, Value, ValueExt, json};
use pintle_registry::Registry;
use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
    time::Duration,
};

/// The interval between renewals, shorter than the lifetime of a lease.
const INTERVAL: Duration = Duration::from_secs(10);
/// The label with the identity of the server.
const IDENTITY_LABEL: &str = "apiserverIdentity";

/// The leases, as a server sees them.
#[derive(Debug, Clone)]
pub struct EndpointLeases {
    leases: ServerLeases,
    own_id: String,
    own_address: SocketAddr,
}

impl EndpointLeases {
    /// The leases for the server of this identity, which others reach at the address.
    pub fn new(leases: ServerLeases, own_id: String, own_address: SocketAddr) -> EndpointLeases {
        EndpointLeases { leases, own_id, own_address }
    }

    /// The identity of this server.
    pub(crate) fn own_id(&self) -> &str {
        &self.own_id
    }

    /// The addresses of other servers, by their identities. Unusable leases are left out.
    pub(crate) async fn addresses(&self) -> Result<BTreeMap<String, SocketAddr>, Status> {
        let leases = self.leases.list().await?;
        let address = |(id, lease): (String, Value)| match self.address_in(&id, &lease) {
            Ok(address) => Some((id, address)),
            Err(error) => {
                if id != self.own_id {
                    tracing::warn!(id, error, "the lease of a server has no usable address");
                }
                None
            }
        };
        Ok(leases.into_iter().filter_map(address).collect())
    }

    /// The address of another server.
    ///
    /// # Errors
    /// The reason why there is none.
    pub(crate) async fn address(&self, id: &str) -> Result<SocketAddr, String> {
        let lease = self.leases.get(id).await.map_err(|status| status.message)?;
        self.address_in(id, &lease.ok_or("the server has no lease")?)
    }

    /// The address in a lease. It is the address of another machine, unless this server advertises a loopback address
    /// itself, so that all servers are on one machine: a lease must not direct requests to what listens beside this
    /// server, or to the server itself.
    fn address_in(&self, id: &str, lease: &Value) -> Result<SocketAddr, String> {
        if lease.str_at(&format!("metadata.labels.{IDENTITY_LABEL}")) != id {
            return Err("the lease is not labelled with the identity of the server".to_owned());
        }
        let subset = lease.items_at("subsets").first().ok_or("the lease has no address")?;
        let ip = subset.items_at("addresses").first().ok_or("the lease has no address")?.str_at("ip");
        let ip: IpAddr = ip.parse().map_err(|_| format!("{ip:?} is no IP address"))?;
        let port = subset.items_at("ports").first().and_then(|port| port.i64_at("port"));
        let port = port.and_then(|port| u16::try_from(port).ok()).filter(|port| *port != 0);
        let address = SocketAddr::new(ip, port.ok_or("the lease has no valid port")?);
        let own = self.own_address.ip().to_canonical();
        let is_refused = match ip.to_canonical() {
            IpAddr::V4(ip) => {
                ip.is_unspecified()
                    || ip.is_multicast()
                    || ip.is_broadcast()
                    || ip.is_link_local()
                    || ip.is_loopback() && !own.is_loopback()
            }
            IpAddr::V6(ip) => {
                ip.is_unspecified()
                    || ip.is_multicast()
                    || ip.is_unicast_link_local()
                    || ip.is_loopback() && !own.is_loopback()
            }
        };
        if is_refused {
            return Err(format!("{ip} is no address of another server"));
        }
        if ip.to_canonical() == own && address.port() == self.own_address.port() {
            return Err(format!("{address} is the address of this server"));
        }
        Ok(address)
    }

    async fn renew(&self) -> Result<(), Status> {
        let lease = |generation| {
            json!({
                "kind": "Endpoints",
                "apiVersion": "v1",
                "metadata": {"generation": generation, "labels": {IDENTITY_LABEL: self.own_id}},
                "subsets": [{
                    "addresses": [{"ip": self.own_address.ip().to_string()}],
                    "ports": [{"name": "https", "port": self.own_address.port(), "protocol": "TCP"}],
                }],
            })
        };
        self.leases.renew(&self.own_id, lease).await
    }
}

/// Renews the lease of this server.
#[derive(Debug)]
pub struct PeerEndpoint(pub EndpointLeases);

impl Controller for PeerEndpoint {
    const NAME: &'static str = "peer endpoint lease";
    const INTERVAL: Duration = INTERVAL;

    async fn bootstrap(&self, _: &dyn Registry) -> Result<(), Status> {
        if let Err(error) = self.0.renew().await {
            // It is renewed again soon, and this server can serve meanwhile.
            tracing::warn!(%error, "other servers do not know the address of this one yet");
        }
        Ok(())
    }

    async fn reconcile(&self, _: &dyn Registry) -> Result<(), Status> {
        self.0.renew().await
    }

    async fn withdraw(&self, _: &dyn Registry) -> Result<(), Status> {
        self.0.leases.remove(&self.0.own_id).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_registry::testing::{MemoryRegistry, now};
    use pintle_storage::{Key, MemoryStorage, Storage};
    use std::sync::Arc;

    const PREFIX: &str = "/registry/peerserverleases/";

    fn leases(storage: &Arc<dyn Storage>, id: &str, address: &str) -> EndpointLeases {
        let leases = ServerLeases::new(storage.clone(), PREFIX);
        EndpointLeases::new(leases, id.to_owned(), address.parse().unwrap())
    }

    #[tokio::test]
    async fn servers_know_the_addresses_of_each_other() {
        let (storage, registry): (Arc<dyn Storage>, _) =
            (Arc::new(MemoryStorage::new()), MemoryRegistry::default());
        let one = leases(&storage, "apiserver-one", "10.0.0.1:6443");
        let two = PeerEndpoint(leases(&storage, "apiserver-two", "[fd00::2]:443"));
        now(two.bootstrap(&registry)).unwrap();
        now(two.reconcile(&registry)).unwrap();
        assert_eq!(now(one.address("apiserver-two")), Ok("[fd00::2]:443".parse().unwrap()));
        let stored = now(storage.get(&Key::new(format!("{PREFIX}apiserver-two")))).unwrap().kv.unwrap();
        assert_eq!(
            serde_json::from_slice::<Value>(&stored.value).unwrap(),
            json!({
                "kind": "Endpoints", "apiVersion": "v1",
                "metadata": {"generation": 2, "labels": {"apiserverIdentity": "apiserver-two"}},
                "subsets": [{
                    "addresses": [{"ip": "fd00::2"}],
                    "ports": [{"name": "https", "port": 443, "protocol": "TCP"}]
                }]
            })
        );
        now(one.renew()).unwrap();
        let all = now(one.addresses()).unwrap();
        assert_eq!(all.keys().collect::<Vec<_>>(), ["apiserver-two"], "the own one is no other server's");
        now(two.withdraw(&registry)).unwrap();
        assert_eq!(now(one.addresses()).unwrap(), BTreeMap::new());
        assert_eq!(now(one.address("apiserver-two")), Err("the server has no lease".to_owned()));
    }

    #[test]
    fn addresses_that_are_not_those_of_other_servers_are_refused() {
        let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
        let check = |own: &str, ip: Value, port: Value, expected: Result<&str, &str>| {
            let lease = json!({
                "metadata": {"labels": {IDENTITY_LABEL: "other"}},
                "subsets": [{"addresses": [{"ip": ip}], "ports": [{"port": port}]}],
            });
            let found = leases(&storage, "own", own).address_in("other", &lease);
            let found = found.map(|address| address.to_string());
            assert_eq!(found.as_deref().map_err(String::as_str), expected, "{lease}");
        };
        let far = "10.0.0.1:6443";
        check(far, json!("10.0.0.2"), json!(6443), Ok("10.0.0.2:6443"));
        check(far, json!("10.0.0.1"), json!(6444), Ok("10.0.0.1:6444"));
        check(far, json!("fd00::2"), json!(1), Ok("[fd00::2]:1"));
        check(far, json!("10.0.0.1"), json!(6443), Err("10.0.0.1:6443 is the address of this server"));
        check(
            far,
            json!("::ffff:10.0.0.1"),
            json!(6443),
            Err("[::ffff:10.0.0.1]:6443 is the address of this server"),
        );
        for ip in [
            "127.0.0.1",
            "127.1.2.3",
            "::1",
            "::ffff:127.0.0.1",
            "0.0.0.0",
            "::",
            "224.0.0.1",
            "ff02::1",
            "255.255.255.255",
            "169.254.169.254",
            "fe80::1",
        ] {
            check(far, json!(ip), json!(6443), Err(&format!("{ip} is no address of another server")));
        }
        for ip in ["", "example.com", "10.0.0.2:6443", "10.0.0.2/24", "fe80::1%eth0"] {
            check(far, json!(ip), json!(6443), Err(&format!("{ip:?} is no IP address")));
        }
        for port in [json!(0), json!(-1), json!(65536), json!("6443"), json!(null)] {
            check(far, json!("10.0.0.2"), port, Err("the lease has no valid port"));
        }
        // Servers on one machine.
        let near = "127.0.0.1:6443";
        check(near, json!("127.0.0.1"), json!(6444), Ok("127.0.0.1:6444"));
        check(near, json!("127.0.0.1"), json!(6443), Err("127.0.0.1:6443 is the address of this server"));

        let refused = |lease: Value, expected: &str| {
            let found = leases(&storage, "own", far).address_in("other", &lease);
            assert_eq!(found, Err(expected.to_owned()), "{lease}");
        };
        let unlabelled = "the lease is not labelled with the identity of the server";
        refused(json!({}), unlabelled);
        refused(json!([]), unlabelled);
        refused(json!({"metadata": {"labels": {IDENTITY_LABEL: "own"}}}), unlabelled);
        let labelled =
            |subsets: Value| json!({"metadata": {"labels": {IDENTITY_LABEL: "other"}}, "subsets": subsets});
        refused(labelled(json!(null)), "the lease has no address");
        refused(labelled(json!([])), "the lease has no address");
        refused(labelled(json!([{"addresses": []}])), "the lease has no address");
    }
}
