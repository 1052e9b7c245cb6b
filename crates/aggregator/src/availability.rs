//! Computes the `Available` condition of API services with a service from Service and EndpointSlice objects
//! (<https://kubernetes.io/docs/concepts/extend-kubernetes/api-extension/apiserver-aggregation/>).

use pintle_machinery::{GroupResource, Status, Value, ValueExt};
use pintle_registry::Registry;

/// Reason and message of an `Available` condition that is `False`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unavailable {
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

/// Determines the reason why an API service is unavailable. Requests are not forwarded yet, so every API service with a
/// service is unavailable.
///
/// # Errors
/// The `Status` of a read that fails for another reason than that the object is missing.
pub(crate) async fn unavailable(services: &dyn Registry, object: &Value) -> Result<Unavailable, Status> {
    let (namespace, name) = (object.str_at("spec.service.namespace"), object.str_at("spec.service.name"));
    let core = |resource: &str| GroupResource::new("", resource);
    let service = match services.get_cached(&core("services"), namespace, name).await {
        Ok(service) => service,
        Err(status) if status.code == 404 => {
            let message = format!("service/{name} in {namespace:?} is not present");
            return Ok(Unavailable { reason: "ServiceNotFound", message });
        }
        Err(status) => return Err(status),
    };
    if service.str_at("spec.type") == "ClusterIP" {
        let port = object.i64_at("spec.service.port").unwrap_or_default();
        let mut ports = service.items_at("spec.ports").iter();
        let Some(port) = ports.find(|own| own.i64_at("port") == Some(port)) else {
            let message = format!("service/{name} in {namespace:?} is not listening on port {port}");
            return Ok(Unavailable { reason: "ServicePortError", message });
        };
        let slices = GroupResource::new("discovery.k8s.io", "endpointslices");
        let mut slices = services.list(&slices, namespace).await?;
        slices.retain(|slice| {
            let labels = slice.map_at("metadata.labels");
            labels.get("kubernetes.io/service-name").and_then(Value::as_str) == Some(name)
        });
        if slices.is_empty() {
            let message = format!("cannot find endpointslices for service/{name} in {namespace:?}");
            return Ok(Unavailable { reason: "EndpointsNotFound", message });
        }
        let port = port.str_at("name");
        if !slices.iter().any(|slice| has_endpoint(slice, port)) {
            let message = format!(
                "endpointslices for service/{name} in {namespace:?} have no addresses with port name {port:?}"
            );
            return Ok(Unavailable { reason: "MissingEndpoints", message });
        }
    }
    let message = "this server does not hand requests on to others".to_owned();
    Ok(Unavailable { reason: "FailedDiscoveryCheck", message })
}

fn has_endpoint(slice: &Value, port: &str) -> bool {
    let is_ready = |endpoint: &Value| {
        let ready = endpoint.at("conditions.ready").and_then(Value::as_bool).unwrap_or(true);
        ready && !endpoint.items_at("addresses").is_empty()
    };
    slice.items_at("ports").iter().any(|own| own.str_at("name") == port)
        && slice.items_at("endpoints").iter().any(is_ready)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_registry::{
        WriteOptions,
        testing::{MemoryRegistry, now},
    };
    use serde_json::json;

    #[test]
    fn the_first_missing_part_behind_an_api_service_is_the_reason() {
        let registry = MemoryRegistry::default();
        let object = json!({"spec": {"service": {"namespace": "n", "name": "s", "port": 443}}});
        let check = |reason: &str, message: &str| {
            let got = now(unavailable(&registry, &object)).unwrap();
            assert_eq!((got.reason, got.message.as_str()), (reason, message));
        };
        let create = |resource: GroupResource, object: Value| {
            now(registry.create(&resource, "n", object, WriteOptions::default())).unwrap();
        };
        let slices = || GroupResource::new("discovery.k8s.io", "endpointslices");
        check("ServiceNotFound", "service/s in \"n\" is not present");
        let service = |name: &str, port: i64| {
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "n"},
                "spec": {"type": "ClusterIP", "ports": [{"port": port, "name": "web"}]}})
        };
        create(GroupResource::new("", "services"), service("s", 80));
        check("ServicePortError", "service/s in \"n\" is not listening on port 443");
        let object = json!({"spec": {"service": {"namespace": "n", "name": "s", "port": 80}}});
        let check = |reason: &str, message: &str| {
            let got = now(unavailable(&registry, &object)).unwrap();
            assert_eq!((got.reason, got.message.as_str()), (reason, message));
        };
        check("EndpointsNotFound", "cannot find endpointslices for service/s in \"n\"");
        let slice = |name: &str, addresses: Value| {
            json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": {"name": name, "namespace": "n",
                "labels": {"kubernetes.io/service-name": "s"}}, "ports": [{"name": "web", "port": 1}],
                "endpoints": [{"addresses": addresses}]})
        };
        create(slices(), slice("a", json!([])));
        check(
            "MissingEndpoints",
            "endpointslices for service/s in \"n\" have no addresses with port name \"web\"",
        );
        create(slices(), slice("b", json!(["10.0.0.1"])));
        check("FailedDiscoveryCheck", "this server does not hand requests on to others");
    }
}
