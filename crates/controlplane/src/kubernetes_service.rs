//! The `kubernetes` service, by which clients inside the cluster reach this server: the service, its endpoints and its
//! endpoint slice, in the namespace `default`.
//!
//! The endpoints are this server's address alone. Several servers of one store would each have to know which of the
//! others live.

use crate::Config;
use crate::objects::{core, create_or_change, unless_off};
use pintle_machinery::{GroupResource, Status, Value, ValueExt};
use pintle_registry::Registry;
use serde_json::json;

const NAMESPACE: &str = "default";
const NAME: &str = "kubernetes";

/// Makes the service, and puts the server's address behind it, unless that is one nobody else reaches.
pub(crate) async fn reconcile(registry: &dyn Registry, config: &Config) -> Result<(), Status> {
    let address = config.advertise_address;
    if !config.publish_endpoints || address.is_loopback() || address.is_unspecified() {
        return unless_off(reconcile_service(registry, config)).await;
    }
    tokio::try_join!(
        unless_off(reconcile_service(registry, config)),
        unless_off(reconcile_endpoints(registry, config)),
        unless_off(reconcile_endpoint_slice(registry, config)),
    )?;
    Ok(())
}

async fn reconcile_service(registry: &dyn Registry, config: &Config) -> Result<(), Status> {
    let Some(address) = config.service_network.api_server_address() else { return Ok(()) };
    let ports = json!([{"name": "https", "port": 443, "targetPort": config.secure_port, "protocol": "TCP"}]);
    let object = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": NAME,
            "namespace": NAMESPACE,
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        },
        "spec": {
            "type": "ClusterIP",
            "clusterIP": address.to_string(),
            "sessionAffinity": "None",
            "ports": ports,
        },
    });
    create_or_change(registry, &core("services"), NAMESPACE, object, |service| {
        service.set("spec.type", "ClusterIP");
        service.set("spec.ports", ports.clone());
    })
    .await
}

async fn reconcile_endpoints(registry: &dyn Registry, config: &Config) -> Result<(), Status> {
    let subsets = json!([{
        "addresses": [{"ip": config.advertise_address.to_string()}],
        "ports": ports(config),
    }]);
    // The slice is made here and not by the controller that mirrors endpoints.
    const SKIP_MIRROR: &str = "endpointslice.kubernetes.io/skip-mirror";
    let object = json!({
        "apiVersion": "v1",
        "kind": "Endpoints",
        "metadata": {"name": NAME, "namespace": NAMESPACE, "labels": {SKIP_MIRROR: "true"}},
        "subsets": subsets,
    });
    create_or_change(registry, &core("endpoints"), NAMESPACE, object, |endpoints| {
        set_label(endpoints, SKIP_MIRROR, "true");
        endpoints.set("subsets", subsets.clone());
    })
    .await
}

async fn reconcile_endpoint_slice(registry: &dyn Registry, config: &Config) -> Result<(), Status> {
    let resource = GroupResource::new("discovery.k8s.io", "endpointslices");
    let address_type = if config.advertise_address.is_ipv4() { "IPv4" } else { "IPv6" };
    let endpoints = json!([{
        "addresses": [config.advertise_address.to_string()],
        "conditions": {"ready": true},
    }]);
    const SERVICE_NAME: &str = "kubernetes.io/service-name";
    let object = json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": NAME, "namespace": NAMESPACE, "labels": {SERVICE_NAME: NAME}},
        "addressType": address_type,
        "endpoints": endpoints,
        "ports": ports(config),
    });
    // The type of addresses may not change, so a slice of the other type has to go first.
    match registry.get(&resource, NAMESPACE, NAME).await {
        Ok(slice) if slice.str_at("addressType") != address_type => {
            registry.delete(&resource, NAMESPACE, NAME, Default::default()).await?;
        }
        _ => {}
    }
    create_or_change(registry, &resource, NAMESPACE, object, |slice| {
        set_label(slice, SERVICE_NAME, NAME);
        slice.set("endpoints", endpoints.clone());
        slice.set("ports", ports(config));
    })
    .await
}

fn ports(config: &Config) -> Value {
    json!([{"name": "https", "port": config.secure_port, "protocol": "TCP"}])
}

fn set_label(object: &mut Value, key: &str, value: &str) {
    object.object_at_mut("metadata.labels").insert(key.to_owned(), value.into());
}
