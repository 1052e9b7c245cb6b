//! `nodes/proxy`: requests to a kubelet, or to another port of a node.

use super::kubelet::KubeletAddresses;
use crate::core::connecting::{ProxyName, proxied_path};
use pintle_machinery::{Status, Value, ValueExt};
use pintle_registry::{
    BoxFuture, ConnectService, Connecter, Destination, Location, RequestContext, Transport,
};

/// Connects to nodes. Without a port, or with that of the kubelet, the kubelet is asked with the server's credentials.
pub(super) struct NodeProxy(pub(super) KubeletAddresses);

impl Connecter for NodeProxy {
    fn connect<'a>(
        &'a self,
        context: &'a RequestContext<'a>,
        options: &'a Value,
    ) -> BoxFuture<'a, Result<Option<Destination>, Status>> {
        Box::pin(async move {
            let ProxyName { scheme, name, port } = ProxyName::parse(context.name, "node")?;
            let kubelet = self.0.find(context, "nodes", name).await?;
            let path = proxied_path(options.str_at("path"));
            let service = ConnectService::ProxyElsewhere;
            Ok(Some(match port.is_empty() || port == kubelet.port {
                true => Destination {
                    location: kubelet.location(path, Vec::new()),
                    transport: Transport::Kubelet,
                    service,
                },
                false => {
                    let (host, port) = (kubelet.into_host(), Some(port.to_owned()));
                    Destination {
                        location: Location { scheme, host, port, path, query: Vec::new() },
                        transport: Transport::Cluster,
                        service,
                    }
                }
            }))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::testing::connect;
    use pintle_machinery::json;

    #[tokio::test]
    async fn the_kubelet_is_asked_on_its_port_only() {
        let node = json!({"metadata": {"name": "n"}, "status": {
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 1234}},
        }});
        let objects = [("nodes", node)];
        let check = async |name: &str, expected: &str| {
            let proxy = NodeProxy(KubeletAddresses::default());
            let found = connect(&proxy, &objects, name, json!({"path": "/a//b/"})).await;
            assert_eq!(found, expected);
        };
        check("n", "Kubelet https://10.0.0.1:1234/a/b/").await;
        check("http:n:1234", "Kubelet https://10.0.0.1:1234/a/b/").await;
        check("n:80", "Cluster http://10.0.0.1:80/a/b/").await;
        check("https:n:443", "Cluster https://10.0.0.1:443/a/b/").await;
        check("none", "404 nodes \"none\" not found").await;
        check("ftp:n:1", "400 invalid node request \"ftp:n:1\"").await;
    }
}
