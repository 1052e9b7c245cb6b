//! Reconciles the `kubernetes` service, through which clients inside the cluster reach this server: the service, its
//! endpoints and its endpoint slice, in the namespace `default`.
//!
//! Several servers may share a store. An [`EndpointReconciler`] determines the servers behind the service. The ports
//! are those of the first server, since all servers must use the same.

use crate::controller::Controller;
use crate::master_leases::MasterLeases;
use crate::objects::{core, create_if_missing, create_or_change};
use pintle_api::core::service::ServiceNetwork;
use pintle_machinery::{GroupResource, Status, StatusReason, Value, ValueExt, json};
use pintle_registry::Registry;
use std::{collections::BTreeSet, net::IpAddr, sync::Arc, time::Duration};

const NAMESPACE: &str = "default";
const NAME: &str = "kubernetes";

/// The number of attempts to create the service while its address is taken, and the pause between them.
const ATTEMPTS: usize = 20;
const PAUSE: Duration = Duration::from_millis(100);

/// The source of the servers behind the service (`--endpoint-reconciler-type`).
#[derive(Debug, Clone)]
pub enum EndpointReconciler {
    /// `lease`: the servers whose leases are valid.
    Lease(MasterLeases),
    /// `master-count`: the servers that have added themselves, up to this number.
    MasterCount(usize),
    /// `none`: the endpoints are managed externally.
    None,
}

/// The interval between reconciliations: clients in the cluster depend on the endpoints.
const INTERVAL: Duration = Duration::from_secs(10);

/// Maintains the service and its endpoints.
#[derive(Debug)]
pub struct KubernetesService {
    /// The network from which services get addresses and ports; shared with the services' strategy.
    pub service_network: Arc<ServiceNetwork>,
    /// The address at which clients reach the server (`--advertise-address`). A loopback address is not published,
    /// because endpoints cannot have one.
    pub advertise_address: IpAddr,
    /// The port at which clients reach the server (`--secure-port`).
    pub secure_port: u16,
    /// The node port of the service (`--kubernetes-service-node-port`); `None` for a service without.
    pub node_port: Option<u16>,
    /// Whether no other server uses the store.
    pub exclusive: bool,
    /// The source of the addresses behind the service (`--endpoint-reconciler-type`).
    pub endpoint_reconciler: EndpointReconciler,
}

impl Controller for KubernetesService {
    const NAME: &'static str = "kubernetes service";
    const INTERVAL: Duration = INTERVAL;

    async fn bootstrap(&self, registry: &dyn Registry) -> Result<(), Status> {
        match reconcile(registry, self).await {
            // Objects of another server may prevent this. The other servers serve the cluster meanwhile, and this one
            // retries in the background.
            Err(status) if !self.exclusive && status != Status::no_such_resource() => {
                tracing::warn!(error = %status, "the kubernetes service is not there yet");
                Ok(())
            }
            result => result,
        }
    }

    async fn reconcile(&self, registry: &dyn Registry) -> Result<(), Status> {
        reconcile(registry, self).await
    }

    async fn withdraw(&self, registry: &dyn Registry) -> Result<(), Status> {
        withdraw(registry, self).await
    }
}

/// Reconciles the service and its endpoints.
async fn reconcile(registry: &dyn Registry, config: &KubernetesService) -> Result<(), Status> {
    tokio::try_join!(reconcile_service(registry, config), reconcile_endpoints(registry, config))?;
    Ok(())
}

/// Removes this server's address from the endpoints at shutdown.
async fn withdraw(registry: &dyn Registry, config: &KubernetesService) -> Result<(), Status> {
    let own = config.advertise_address;
    if config.exclusive || !is_published(config) {
        return Ok(());
    }
    let without_own = |present: &BTreeSet<IpAddr>| present.iter().filter(|ip| **ip != own).copied().collect();
    let result = match &config.endpoint_reconciler {
        EndpointReconciler::None => Ok(()),
        EndpointReconciler::Lease(leases) => {
            leases.remove(own).await?;
            let alive = leases.list().await?;
            publish(registry, config, |_| alive.clone()).await
        }
        EndpointReconciler::MasterCount(_) => publish(registry, config, without_own).await,
    };
    match result {
        // The endpoints were deleted.
        Err(status) if status.reason == StatusReason::NotFound => Ok(()),
        result => result,
    }
}

/// Endpoints cannot have a loopback address, which other hosts could not reach.
fn is_published(config: &KubernetesService) -> bool {
    !config.advertise_address.is_loopback() && !config.advertise_address.is_unspecified()
}

async fn reconcile_service(registry: &dyn Registry, config: &KubernetesService) -> Result<(), Status> {
    let Some(address) = config.service_network.api_server_address() else { return Ok(()) };
    let mut port = json!({"name": "https", "port": 443, "targetPort": config.secure_port, "protocol": "TCP"});
    let mut service_type = "ClusterIP";
    if let Some(node_port) = config.node_port {
        port.set("nodePort", node_port);
        service_type = "NodePort";
    }
    let ports = json!([port]);
    let object = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": NAME,
            "namespace": NAMESPACE,
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        },
        "spec": {
            "type": service_type,
            "clusterIP": address.to_string(),
            "ipFamilyPolicy": "SingleStack",
            "sessionAffinity": "None",
            "ports": ports,
        },
    });
    if !config.exclusive {
        // Servers with different ports would overwrite each other's ports without end.
        return create_unless_begun(registry, object).await;
    }
    create_or_change(registry, &core("services"), NAMESPACE, object, |service| {
        service.set("spec.type", service_type);
        service.set("spec.ports", ports.clone());
    })
    .await
}

/// Creates the service. Retries while the address is taken but the service does not exist, because another server is
/// creating it.
async fn create_unless_begun(registry: &dyn Registry, object: Value) -> Result<(), Status> {
    let mut attempt = 1;
    loop {
        match create_if_missing(registry, &core("services"), NAMESPACE, object.clone()).await {
            Err(status) if status.reason == StatusReason::Invalid && attempt < ATTEMPTS => {
                attempt += 1;
                tokio::time::sleep(PAUSE).await;
            }
            result => return result.map(drop),
        }
    }
}

async fn reconcile_endpoints(registry: &dyn Registry, config: &KubernetesService) -> Result<(), Status> {
    let own = config.advertise_address;
    if !is_published(config) {
        return Ok(());
    }
    match &config.endpoint_reconciler {
        EndpointReconciler::None => Ok(()),
        EndpointReconciler::Lease(_) if config.exclusive => {
            publish(registry, config, |_| BTreeSet::from([own])).await
        }
        EndpointReconciler::Lease(leases) => {
            // The lease comes first, so that other servers see this one also if a later step fails.
            leases.renew(own).await?;
            let alive = leases.list().await?;
            if alive.is_empty() {
                return Err(Status::internal_error(
                    "no API server IP addresses were listed in storage, refusing to erase all endpoints for the \
                     kubernetes Service",
                ));
            }
            publish(registry, config, |_| alive.clone()).await
        }
        EndpointReconciler::MasterCount(count) => {
            publish(registry, config, |present| with_own(present, own, *count)).await
        }
    }
}

/// Adds this server's address. Above the maximum, the addresses that follow this server's are removed, continuing from
/// the start of the order. When all servers do this, the addresses of stopped servers disappear.
fn with_own(present: &BTreeSet<IpAddr>, own: IpAddr, count: usize) -> BTreeSet<IpAddr> {
    let mut all = present.clone();
    all.insert(own);
    while all.len() > count.max(1) {
        let in_text_order = sorted(&all);
        let next = in_text_order.iter().skip_while(|ip| **ip != own).nth(1).or(in_text_order.first());
        let Some(next) = next.copied() else { break };
        all.remove(&next);
    }
    all
}

/// Sorts addresses as text, as the store lists them.
fn sorted(addresses: &BTreeSet<IpAddr>) -> Vec<IpAddr> {
    let mut sorted: Vec<IpAddr> = addresses.iter().copied().collect();
    sorted.sort_by_key(IpAddr::to_string);
    sorted
}

/// Publishes the addresses that `wanted` returns for the present ones in the endpoints and the slice.
async fn publish(
    registry: &dyn Registry,
    config: &KubernetesService,
    wanted: impl Fn(&BTreeSet<IpAddr>) -> BTreeSet<IpAddr> + Send + Sync,
) -> Result<(), Status> {
    // The slice is managed here and not by the controller that mirrors endpoints.
    const SKIP_MIRROR: &str = "endpointslice.kubernetes.io/skip-mirror";
    let resource = core("endpoints");
    let mut object = json!({
        "apiVersion": "v1",
        "kind": "Endpoints",
        "metadata": {"name": NAME, "namespace": NAMESPACE, "labels": {SKIP_MIRROR: "true"}},
    });
    set_addresses(&mut object, config, &wanted);
    create_or_change(registry, &resource, NAMESPACE, object, |endpoints| {
        set_label(endpoints, SKIP_MIRROR, "true");
        set_addresses(endpoints, config, &wanted);
    })
    .await?;
    let endpoints = registry.get(&resource, NAMESPACE, NAME).await?;
    reconcile_endpoint_slice(registry, &endpoints).await
}

/// Sets the addresses. Existing ports are kept, unless this server uses the store exclusively.
fn set_addresses(
    endpoints: &mut Value,
    config: &KubernetesService,
    wanted: impl Fn(&BTreeSet<IpAddr>) -> BTreeSet<IpAddr>,
) {
    let subset = match endpoints.items_at("subsets") {
        [subset] => Some(subset.clone()),
        _ => None,
    };
    let listed: Vec<&str> = subset
        .as_ref()
        .map(|subset| subset.items_at("addresses").iter().map(|address| address.str_at("ip")).collect())
        .unwrap_or_default();
    let present: BTreeSet<IpAddr> = listed.iter().filter_map(|ip| ip.parse().ok()).collect();
    let wanted = wanted(&present);
    if wanted.is_empty() {
        endpoints.remove_at("subsets");
        return;
    }
    let ports = match &subset {
        Some(subset) if !config.exclusive => subset.at("ports").cloned().unwrap_or_else(|| ports(config)),
        _ => ports(config),
    };
    // Other attributes of the addresses are kept as long as the addresses do not change.
    let addresses = match &subset {
        Some(subset) if wanted == present && listed.len() == present.len() => {
            subset.at("addresses").cloned().unwrap_or_default()
        }
        _ => sorted(&wanted).iter().map(|ip| json!({"ip": ip.to_string()})).collect(),
    };
    let mut subset = subset.unwrap_or_else(|| json!({}));
    subset.set("addresses", addresses);
    subset.set("ports", ports);
    endpoints.set("subsets", vec![subset]);
}

async fn reconcile_endpoint_slice(registry: &dyn Registry, endpoints: &Value) -> Result<(), Status> {
    let resource = GroupResource::new("discovery.k8s.io", "endpointslices");
    let none = Value::Null;
    let subset = endpoints.items_at("subsets").first().unwrap_or(&none);
    let addresses: Vec<IpAddr> =
        subset.items_at("addresses").iter().filter_map(|address| address.str_at("ip").parse().ok()).collect();
    // A slice has one address family; a mixture of families gives an IPv4 slice.
    let is_ipv6 = !addresses.is_empty() && addresses.iter().all(IpAddr::is_ipv6);
    let address_type = if is_ipv6 { "IPv6" } else { "IPv4" };
    let of_family = addresses.iter().filter(|address| address.is_ipv6() == is_ipv6);
    let listed: Vec<Value> = of_family
        .map(|address| json!({"addresses": [address.to_string()], "conditions": {"ready": true}}))
        .collect();
    const SERVICE_NAME: &str = "kubernetes.io/service-name";
    let fill = |slice: &mut Value| {
        slice.set("metadata.labels", json!({SERVICE_NAME: NAME}));
        for (member, value) in [
            ("endpoints", (!listed.is_empty()).then(|| listed.clone().into())),
            ("ports", subset.at("ports").cloned()),
        ] {
            match value {
                Some(value) => slice.set(member, value),
                None => drop(slice.remove_at(member)),
            }
        }
    };
    let mut object = json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": NAME, "namespace": NAMESPACE},
        "addressType": address_type,
    });
    fill(&mut object);
    // The address type is immutable, so a slice of the other type is deleted first.
    match registry.get(&resource, NAMESPACE, NAME).await {
        Ok(slice) if slice.str_at("addressType") != address_type => {
            match registry.delete(&resource, NAMESPACE, NAME, Default::default()).await {
                Err(status) if status.reason != StatusReason::NotFound => return Err(status),
                _ => {}
            }
        }
        _ => {}
    }
    create_or_change(registry, &resource, NAMESPACE, object, fill).await
}

fn ports(config: &KubernetesService) -> Value {
    json!([{"name": "https", "port": config.secure_port, "protocol": "TCP"}])
}

fn set_label(object: &mut Value, key: &str, value: &str) {
    object.object_at_mut("metadata.labels").insert(key, value.into());
}

#[cfg(test)]
mod tests;
