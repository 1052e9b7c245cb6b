//! The address of a node's kubelet.

use crate::core::connecting::read;
use pintle_machinery::{Status, Value, ValueExt};
use pintle_registry::{Location, RequestContext, Scheme};
use std::sync::Arc;

/// The port of a kubelet whose node tells none, unless `--kubelet-port` says otherwise.
const DEFAULT_PORT: u32 = 10250;
/// The feature of a kubelet that speaks all protocols of streams over WebSocket.
const WEBSOCKETS: &str = "ExtendWebSocketsToKubelet";

/// The addresses at which kubelets are reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KubeletAddresses {
    /// The order in which the types of node addresses are tried (`--kubelet-preferred-address-types`).
    types: Arc<[String]>,
    /// The port of a kubelet whose node tells none (`--kubelet-port`).
    port: u32,
}

impl Default for KubeletAddresses {
    fn default() -> KubeletAddresses {
        KubeletAddresses::new(
            ["Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP"].map(str::to_owned),
        )
    }
}

/// A kubelet.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::core) struct Kubelet {
    host: String,
    pub(in crate::core) port: String,
    /// Whether it speaks all protocols of streams over WebSocket.
    pub(in crate::core) has_websockets: bool,
}

impl Kubelet {
    /// The URL of a path of the kubelet.
    pub(in crate::core) fn location(self, path: String, query: Vec<(&'static str, String)>) -> Location {
        Location { scheme: Scheme::Https, host: self.host, port: Some(self.port), path, query }
    }

    /// The host name or the address.
    pub(in crate::core) fn into_host(self) -> String {
        self.host
    }
}

impl KubeletAddresses {
    /// The order of types, and the usual port.
    pub fn new(types: impl IntoIterator<Item = String>) -> KubeletAddresses {
        KubeletAddresses { types: types.into_iter().collect(), port: DEFAULT_PORT }
    }

    /// Sets the port of kubelets whose nodes tell none.
    #[must_use]
    pub fn with_port(self, port: u32) -> KubeletAddresses {
        KubeletAddresses { port, ..self }
    }

    /// Finds the kubelet of a node, for a request of the resource `of`.
    ///
    /// # Errors
    /// 404 when the node does not exist, 500 when it has no address of a preferred type.
    pub(in crate::core) async fn find(
        &self,
        context: &RequestContext<'_>,
        of: &str,
        node: &str,
    ) -> Result<Kubelet, Status> {
        self.kubelet_of(&read(context, of, "nodes", "", node).await?)
    }

    fn kubelet_of(&self, node: &Value) -> Result<Kubelet, Status> {
        let addresses = node.items_at("status.addresses");
        let mut preferred = self.types.iter().filter_map(|preferred| {
            addresses.iter().find(|address| address.str_at("type") == preferred.as_str())
        });
        let Some(address) = preferred.next() else {
            let known = addresses
                .iter()
                .map(|address| format!("{{{} {}}}", address.str_at("type"), address.str_at("address")));
            let known = known.collect::<Vec<_>>().join(" ");
            return Err(Status::unknown(format!("no preferred addresses found; known addresses: [{known}]")));
        };
        let port = node.i64_at("status.daemonEndpoints.kubeletEndpoint.Port").filter(|port| *port > 0);
        Ok(Kubelet {
            host: address.str_at("address").to_owned(),
            port: port.unwrap_or(self.port.into()).to_string(),
            has_websockets: node
                .items_at("status.declaredFeatures")
                .iter()
                .any(|feature| feature.as_str() == Some(WEBSOCKETS)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    #[test]
    fn the_first_address_of_the_first_type_counts() {
        let node = json!({"status": {
            "addresses": [
                {"type": "InternalIP", "address": "10.0.0.1"},
                {"type": "InternalIP", "address": "10.0.0.2"},
                {"type": "ExternalIP", "address": ""},
            ],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 1234}},
            "declaredFeatures": ["Other", "ExtendWebSocketsToKubelet"],
        }});
        let check = |types: &[&str], expected: &str| {
            let addresses = KubeletAddresses::new(types.iter().copied().map(str::to_owned));
            let found = addresses.kubelet_of(&node).map(|kubelet| {
                assert!(kubelet.has_websockets);
                format!("{}:{}", kubelet.host, kubelet.port)
            });
            assert_eq!(found.unwrap_or_else(|status| status.message), expected);
        };
        check(&["Hostname", "InternalIP"], "10.0.0.1:1234");
        check(&["ExternalIP", "InternalIP"], ":1234");
        let known = "[{InternalIP 10.0.0.1} {InternalIP 10.0.0.2} {ExternalIP }]";
        check(&["Hostname"], &format!("no preferred addresses found; known addresses: {known}"));
        check(&[], &format!("no preferred addresses found; known addresses: {known}"));
    }

    #[test]
    fn a_kubelet_has_the_default_port() {
        for port in [json!(null), json!(0), json!(-1)] {
            let node = json!({"status": {
                "addresses": [{"type": "InternalIP", "address": "fd00::1"}],
                "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
            }});
            let kubelet = KubeletAddresses::default().kubelet_of(&node).unwrap();
            assert!(!kubelet.has_websockets);
            assert_eq!(kubelet.location(String::new(), Vec::new()).authority(), "[fd00::1]:10250");
            let kubelet = KubeletAddresses::default().with_port(9).kubelet_of(&node).unwrap();
            assert_eq!(kubelet.location(String::new(), Vec::new()).authority(), "[fd00::1]:9");
        }
    }
}
