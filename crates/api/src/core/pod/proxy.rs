//! `pods/proxy`: requests to a port of a pod.

use crate::core::connecting::{ProxyName, proxied_path, read};
use pintle_go_forms::parse_ip_sloppy;
use pintle_machinery::{Status, Value, ValueExt};
use pintle_registry::{
    BoxFuture, ConnectService, Connecter, Destination, Location, RequestContext, Transport, is_proxyable,
};

/// Connects to pods: to the port in the name, or else the first one that a container declares.
pub(super) struct PodProxy;

impl Connecter for PodProxy {
    fn connect<'a>(
        &'a self,
        context: &'a RequestContext<'a>,
        options: &'a Value,
    ) -> BoxFuture<'a, Result<Option<Destination>, Status>> {
        Box::pin(async move {
            let ProxyName { scheme, name, port } = ProxyName::parse(context.name, "pod")?;
            let pod = read(context, "pods", "pods", context.namespace, name).await?;
            let port = match port {
                "" => first_port(&pod),
                port => Some(port.to_owned()),
            };
            let address = pod_ip(&pod);
            if !parse_ip_sloppy(address).is_some_and(is_proxyable) {
                return Err(Status::bad_request("address not allowed"));
            }
            Ok(Some(Destination {
                location: Location {
                    scheme,
                    host: address.to_owned(),
                    port,
                    path: proxied_path(options.str_at("path")),
                    query: Vec::new(),
                },
                transport: Transport::Cluster,
                service: ConnectService::Proxy,
            }))
        })
    }
}

fn first_port(pod: &Value) -> Option<String> {
    let first = |container: &Value| container.items_at("ports").first()?.i64_at("containerPort");
    pod.items_at("spec.containers").iter().find_map(first).map(|port| port.to_string())
}

fn pod_ip(pod: &Value) -> &str {
    pod.items_at("status.podIPs").first().map_or("", |ip| ip.str_at("ip"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::testing::connect;
    use pintle_machinery::json;

    #[tokio::test]
    async fn pods_are_reached_at_their_first_port() {
        let pod = |name: &str, ip: &str, ports: Value| {
            json!({"metadata": {"name": name, "namespace": "ns"}, "status": {"podIPs": [{"ip": ip}]},
                "spec": {"containers": [{"name": "a"}, {"name": "b", "ports": ports}]}})
        };
        let ports = json!([{"containerPort": 8080}, {"containerPort": 1}]);
        let objects = [
            ("pods", pod("p", "10.0.0.1", ports.clone())),
            ("pods", pod("six", "fd00::1", json!([]))),
            ("pods", pod("loopback", "127.0.0.1", ports.clone())),
            ("pods", pod("mapped", "::ffff:127.0.0.1", ports.clone())),
            ("pods", pod("link", "169.254.169.254", ports.clone())),
            ("pods", pod("none", "", ports)),
        ];
        let check = async |name: &str, expected: &str| {
            assert_eq!(connect(&PodProxy, &objects, name, json!({"path": "/x/../y"})).await, expected);
        };
        check("p", "Cluster http://10.0.0.1:8080/y").await;
        check("p:9", "Cluster http://10.0.0.1:9/y").await;
        check("https:p:", "Cluster https://10.0.0.1:8080/y").await;
        check("six", "Cluster http://[fd00::1]/y").await;
        for refused in ["loopback", "mapped", "link", "none"] {
            check(refused, "400 address not allowed").await;
        }
        check("missing", "404 pods \"missing\" not found").await;
        check("a:b:c:d", "400 invalid pod request \"a:b:c:d\"").await;
    }
}
