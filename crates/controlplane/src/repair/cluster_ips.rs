//! Compares `IPAddress` objects with services.

use super::metrics::{Difference, RepairMetrics};
use crate::objects::{core, create_if_missing};
use jiff::{SignedDuration, Timestamp};
use pintle_api::core::service::{
    MANAGED_BY_IP_ALLOCATOR, allocated_cluster_ips, ip_address_object, ip_addresses, publish_allocated_ips,
};
use pintle_go_forms::parse_ip_sloppy;
use pintle_machinery::{
    Status, StatusReason, Value, ValueExt,
    meta::{ObjectMeta, parse_time},
};
use pintle_registry::{DeleteOptions, Preconditions, Registry};
use std::{collections::BTreeMap, fmt, net::IpAddr, ops::ControlFlow, sync::Arc};

/// The maximum time between the allocation of an address and the write of its service.
const GRACE_PERIOD: SignedDuration = SignedDuration::from_secs(60);

/// Allocates addresses that services hold without an allocation, and releases those that no service holds.
pub(super) async fn repair(
    registry: &dyn Registry,
    now: Timestamp,
    metrics: &RepairMetrics,
) -> Result<(), Status> {
    let mut held: BTreeMap<IpAddr, Arc<Holder>> = BTreeMap::new();
    let mut look = |service: Value| {
        let holder = Arc::new(Holder::of(&service));
        for address in allocated_cluster_ips(&service).into_iter().filter_map(parse_ip_sloppy) {
            if let Some(other) = held.insert(address, holder.clone()) {
                metrics.found(Difference::Duplicate);
                tracing::error!(
                    %address,
                    service = %holder,
                    %other,
                    "two services hold one cluster IP; one of them should be recreated"
                );
            }
        }
        ControlFlow::Continue(())
    };
    registry.visit(&core("services"), "", &mut look).await?;
    let mut unclaimed = held.clone();
    let (mut allocated, mut leaked) = (Vec::new(), Vec::new());
    let mut look = |object: Value| {
        let Some(address) = parse_ip_sloppy(object.name()) else { return ControlFlow::Continue(()) };
        unclaimed.remove(&address);
        let is_ours = object.label("ipaddress.kubernetes.io/managed-by") == Some(MANAGED_BY_IP_ALLOCATOR);
        let is_held = held.get(&address).is_some_and(|service| service.claims(&object));
        match is_ours && !is_held && is_old(&object, now) {
            true => leaked.push(object),
            false => allocated.push(address),
        }
        ControlFlow::Continue(())
    };
    registry.visit(&ip_addresses(), "", &mut look).await?;
    for object in leaked {
        metrics.found(Difference::Leak);
        release(registry, &object).await?;
    }
    for (address, service) in unclaimed {
        if claim(registry, address, &service).await? {
            metrics.found(Difference::Unallocated);
            allocated.push(address);
        }
    }
    publish_allocated_ips(registry, &allocated).await
}

/// A service that holds addresses.
struct Holder {
    namespace: String,
    name: String,
    uid: String,
}

impl Holder {
    fn of(service: &Value) -> Holder {
        let [namespace, name, uid] = [service.namespace(), service.name(), service.uid()].map(str::to_owned);
        Holder { namespace, name, uid }
    }

    /// Whether an `IPAddress` object is of this service.
    fn claims(&self, object: &Value) -> bool {
        object.str_at("spec.parentRef.namespace") == self.namespace
            && object.str_at("spec.parentRef.name") == self.name
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

fn is_old(object: &Value, now: Timestamp) -> bool {
    parse_time(object.str_at("metadata.creationTimestamp"))
        .is_some_and(|created| now.duration_since(created) > GRACE_PERIOD)
}

async fn release(registry: &dyn Registry, object: &Value) -> Result<(), Status> {
    let options = DeleteOptions {
        preconditions: Preconditions {
            uid: Some(object.uid().to_owned()),
            resource_version: Some(object.resource_version().to_owned()),
        },
        ..DeleteOptions::default()
    };
    match registry.delete(&ip_addresses(), "", object.name(), options).await {
        Err(status) if matches!(status.reason, StatusReason::NotFound | StatusReason::Conflict) => Ok(()),
        result => result.map(|_| tracing::info!(address = object.name(), "released a leaked cluster IP")),
    }
}

/// Allocates the address of a service; returns whether it was not allocated.
async fn claim(registry: &dyn Registry, address: IpAddr, service: &Holder) -> Result<bool, Status> {
    let Holder { namespace, name, uid } = service;
    // The service may have been deleted since it was listed, and its address released.
    match registry.get(&core("services"), namespace, name).await {
        Ok(current) if current.uid() == *uid => {}
        _ => return Ok(false),
    }
    let object = ip_address_object(address, namespace, name);
    let created = create_if_missing(registry, &ip_addresses(), "", object).await?;
    if created {
        tracing::info!(%address, %service, "claimed a cluster IP anew");
    }
    Ok(created)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;
    use pintle_registry::{
        WriteOptions,
        testing::{MemoryRegistry, now},
    };

    #[test]
    fn leaks_are_released_and_lost_claims_made_again() {
        let registry = MemoryRegistry::default();
        let service = |name: &str, ip: &str| {
            let service = json!({
                "metadata": {"name": name}, "spec": {"type": "ClusterIP", "clusterIP": ip, "clusterIPs": [ip]}
            });
            now(registry.create(&core("services"), "n", service, WriteOptions::default())).unwrap();
        };
        let address = |ip: &str, name: &str, created: &str| {
            let mut object = ip_address_object(ip.parse().unwrap(), "n", name);
            object.set("metadata.creationTimestamp", created);
            now(registry.create(&ip_addresses(), "", object, WriteOptions::default())).unwrap();
        };
        let (old, new) = ("2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z");
        service("held", "10.0.0.2");
        address("10.0.0.2", "held", old);
        service("lost", "10.0.0.3");
        service("headless", "None");
        address("10.0.0.4", "gone", old);
        address("10.0.0.5", "coming", new);
        address("10.0.0.6", "held", old);
        let mut foreign = ip_address_object("10.0.0.7".parse().unwrap(), "n", "gone");
        foreign.set("metadata", json!({"name": "10.0.0.7", "creationTimestamp": old}));
        now(registry.create(&ip_addresses(), "", foreign, WriteOptions::default())).unwrap();

        let metrics = RepairMetrics::of_cluster_ips().unwrap();
        now(repair(&registry, "2026-01-01T01:00:30Z".parse().unwrap(), &metrics)).unwrap();
        assert_eq!((metrics.count(Difference::Leak), metrics.count(Difference::Unallocated)), (2, 1));
        let left = now(registry.list(&ip_addresses(), "")).unwrap();
        let names: Vec<&str> = left.iter().map(|object| object.name()).collect();
        assert_eq!(names, ["10.0.0.2", "10.0.0.3", "10.0.0.5", "10.0.0.7"]);
        assert_eq!(left[1].str_at("spec.parentRef.name"), "lost");
    }
}
