//! `services/proxy`: requests to an endpoint of a service.

use crate::core::connecting::{ProxyName, proxied_path, read};
use pintle_machinery::{Status, Value, ValueExt};
use pintle_registry::{
    BoxFuture, ConnectService, Connecter, Destination, Location, RequestContext, Transport,
};
use rand::seq::SliceRandom;

/// Connects to services: to a random address of the `Endpoints` object that is the address of a pod.
pub(super) struct ServiceProxy;

impl Connecter for ServiceProxy {
    fn connect<'a>(
        &'a self,
        context: &'a RequestContext<'a>,
        options: &'a Value,
    ) -> BoxFuture<'a, Result<Option<Destination>, Status>> {
        Box::pin(async move {
            let ProxyName { scheme, name, port } = ProxyName::parse(context.name, "service")?;
            let port = port_name(context, name, port).await?;
            let endpoints = read(context, "services", "endpoints", context.namespace, name).await?;
            let (host, port) = endpoint(context, name, &endpoints, &port).await?;
            Ok(Some(Destination {
                location: Location {
                    scheme,
                    host,
                    port: Some(port),
                    path: proxied_path(options.str_at("path")),
                    query: Vec::new(),
                },
                transport: Transport::Cluster,
                service: ConnectService::Proxy,
            }))
        })
    }
}

/// The name of the port that a request names: a number is that of a port of the service.
async fn port_name(context: &RequestContext<'_>, name: &str, port: &str) -> Result<String, Status> {
    let Ok(number) = port.parse::<i64>() else { return Ok(port.to_owned()) };
    let service = read(context, "services", "services", context.namespace, name).await?;
    let mut ports = service.items_at("spec.ports").iter();
    match ports.find(|own| own.i64_at("port") == Some(number)) {
        Some(port) => Ok(port.str_at("name").to_owned()),
        None => {
            let message = format!("no service port {number} found for service {name:?}");
            Err(Status::service_unavailable(message))
        }
    }
}

/// An address and the number of the port of this name.
async fn endpoint(
    context: &RequestContext<'_>,
    name: &str,
    endpoints: &Value,
    port: &str,
) -> Result<(String, String), Status> {
    let unavailable =
        |asked: &str| Status::service_unavailable(format!("no endpoints available for service {asked:?}"));
    let mut subsets: Vec<&Value> = endpoints.items_at("subsets").iter().collect();
    if subsets.is_empty() {
        return Err(unavailable(name));
    }
    subsets.shuffle(&mut rand::rng());
    for subset in subsets {
        let Some(number) = subset.items_at("ports").iter().find(|own| own.str_at("name") == port) else {
            continue;
        };
        let number = number.i64_at("port").unwrap_or_default();
        let mut addresses: Vec<&Value> = subset.items_at("addresses").iter().collect();
        addresses.shuffle(&mut rand::rng());
        for address in addresses.into_iter().take(MAX_TRIES) {
            if is_of_pod(context, address).await {
                return Ok((address.str_at("ip").to_owned(), number.to_string()));
            }
        }
    }
    Err(unavailable(context.name))
}

/// The most addresses of a subset that are compared with their pods: each takes a read.
const MAX_TRIES: usize = 100;

/// Whether an address is that of the pod that it names. Other addresses could be anything, such as the server's own.
async fn is_of_pod(context: &RequestContext<'_>, address: &Value) -> bool {
    if address.str_at("targetRef.namespace") != context.namespace {
        return false;
    }
    let pod = read(context, "pods", "pods", context.namespace, address.str_at("targetRef.name")).await;
    let ip = address.str_at("ip");
    pod.is_ok_and(|pod| pod.items_at("status.podIPs").iter().any(|own| own.str_at("ip") == ip))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::testing::connect;
    use pintle_machinery::json;

    #[tokio::test]
    async fn requests_go_to_addresses_of_pods() {
        let pod =
            json!({"metadata": {"name": "p", "namespace": "ns"}, "status": {"podIPs": [{"ip": "10.0.0.1"}]}});
        let service = json!({"metadata": {"name": "s", "namespace": "ns"},
            "spec": {"ports": [{"name": "http", "port": 80}, {"name": "tls", "port": 443}]}});
        let target = |namespace: &str, name: &str| json!({"namespace": namespace, "name": name});
        let endpoints = |name: &str, addresses: Value| {
            json!({"metadata": {"name": name, "namespace": "ns"}, "subsets": [
                {"notReadyAddresses": [], "ports": [{"name": "http", "port": 1}]},
                {"addresses": addresses, "ports": [{"name": "http", "port": 8080}, {"port": 9}]},
            ]})
        };
        let good = json!([{"ip": "10.0.0.9"}, {"ip": "10.0.0.1", "targetRef": target("ns", "p")}]);
        let objects = [
            ("pods", pod),
            ("services", service),
            ("endpoints", endpoints("s", good)),
            ("endpoints", endpoints("no-target", json!([{"ip": "10.0.0.1"}]))),
            ("endpoints", endpoints("other-ip", json!([{"ip": "10.0.0.2", "targetRef": target("ns", "p")}]))),
            ("endpoints", endpoints("no-pod", json!([{"ip": "10.0.0.1", "targetRef": target("ns", "x")}]))),
            (
                "endpoints",
                endpoints("elsewhere", json!([{"ip": "10.0.0.1", "targetRef": target("no", "p")}])),
            ),
            ("endpoints", json!({"metadata": {"name": "empty", "namespace": "ns"}})),
        ];
        let check = async |name: &str, expected: &str| {
            assert_eq!(connect(&ServiceProxy, &objects, name, json!({"path": "/"})).await, expected);
        };
        check("s:http", "Cluster http://10.0.0.1:8080/").await;
        check("s:80", "Cluster http://10.0.0.1:8080/").await;
        check("https:s:http", "Cluster https://10.0.0.1:8080/").await;
        check("s", "Cluster http://10.0.0.1:9/").await;
        check("s:443", "503 no endpoints available for service \"s:443\"").await;
        check("s:81", "503 no service port 81 found for service \"s\"").await;
        check("s:x", "503 no endpoints available for service \"s:x\"").await;
        check("no-target", "503 no endpoints available for service \"no-target\"").await;
        for refused in ["other-ip:http", "no-pod:http", "elsewhere:http"] {
            check(refused, &format!("503 no endpoints available for service {refused:?}")).await;
        }
        check("empty:x", "503 no endpoints available for service \"empty\"").await;
        check("missing", "404 services \"missing\" not found").await;
    }
}
