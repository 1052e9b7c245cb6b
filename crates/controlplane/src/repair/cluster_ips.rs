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
        let is_held = held.get(&address).is_some_and(|service| service.claims(&object));
        match is_ours(&object) && !is_held && age(&object, now) > GRACE_PERIOD {
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

/// Allocates the addresses that one service holds without an allocation. The objects may be slightly stale: whatever
/// is found to be wrong is read again before it is repaired.
pub(super) async fn repair_service(
    registry: &dyn Registry,
    namespace: &str,
    name: &str,
    metrics: &RepairMetrics,
) -> Result<(), Status> {
    let Some(service) = if_there(registry.get_cached(&core("services"), namespace, name).await)? else {
        return Ok(());
    };
    let holder = Holder::of(&service);
    for address in allocated_cluster_ips(&service).into_iter().filter_map(parse_ip_sloppy) {
        let object_name = address.to_string();
        let cached = if_there(registry.get_cached(&ip_addresses(), "", &object_name).await)?;
        if cached.is_some_and(|object| is_ours(&object) && holder.claims(&object)) {
            continue;
        }
        let Some(object) = if_there(registry.get(&ip_addresses(), "", &object_name).await)? else {
            if claim(registry, address, &holder).await? {
                metrics.found(Difference::Unallocated);
            }
            continue;
        };
        let is_of_another = match Holder::of_address(&object) {
            Some(other) if !holder.claims(&object) => other.exists(registry).await?,
            Some(_) | None => false,
        };
        if is_of_another {
            metrics.found(Difference::Duplicate);
            tracing::error!(%address, service = %holder, "another service holds the cluster IP; one should be recreated");
        } else if !(is_ours(&object) && holder.claims(&object)) && holder.holds(registry, address).await? {
            release(registry, &object).await?;
            claim(registry, address, &holder).await?;
        }
    }
    Ok(())
}

/// Releases an allocation that no service holds. Returns the time after which it is to be looked at again, because its
/// service may not have been written yet.
pub(super) async fn repair_address(
    registry: &dyn Registry,
    name: &str,
    now: Timestamp,
    metrics: &RepairMetrics,
) -> Result<Option<SignedDuration>, Status> {
    let Some(object) = if_there(registry.get_cached(&ip_addresses(), "", name).await)? else {
        return Ok(None);
    };
    let (true, Some(address)) = (is_ours(&object), parse_ip_sloppy(name)) else { return Ok(None) };
    if let Some(holder) = Holder::of_address(&object) {
        let cached = registry.get_cached(&core("services"), &holder.namespace, &holder.name).await;
        if if_there(cached)?.is_some_and(|service| holds(&service, address)) {
            return Ok(None);
        }
        let age = age(&object, now);
        if age <= GRACE_PERIOD {
            return Ok(Some(GRACE_PERIOD - age));
        }
        if holder.holds(registry, address).await? {
            return Ok(None);
        }
    }
    metrics.found(Difference::Leak);
    release(registry, &object).await?;
    Ok(None)
}

/// The object, `None` when there is none.
fn if_there(read: Result<Value, Status>) -> Result<Option<Value>, Status> {
    match read {
        Err(status) if status.reason == StatusReason::NotFound && status != Status::no_such_resource() => {
            Ok(None)
        }
        read => read.map(Some),
    }
}

fn holds(service: &Value, address: IpAddr) -> bool {
    allocated_cluster_ips(service).into_iter().filter_map(parse_ip_sloppy).any(|held| held == address)
}

/// Whether the server has allocated an address, and not a client.
fn is_ours(object: &Value) -> bool {
    object.label("ipaddress.kubernetes.io/managed-by") == Some(MANAGED_BY_IP_ALLOCATOR)
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

    /// The service of an `IPAddress` object; `None` when it is of something else.
    fn of_address(object: &Value) -> Option<Holder> {
        let of = |name: &str| object.str_at(&format!("spec.parentRef.{name}")).to_owned();
        (of("group").is_empty() && of("resource") == "services").then(|| Holder {
            namespace: of("namespace"),
            name: of("name"),
            uid: String::new(),
        })
    }

    async fn exists(&self, registry: &dyn Registry) -> Result<bool, Status> {
        Ok(if_there(registry.get(&core("services"), &self.namespace, &self.name).await)?.is_some())
    }

    /// Whether the service has the address now.
    async fn holds(&self, registry: &dyn Registry, address: IpAddr) -> Result<bool, Status> {
        let service = registry.get(&core("services"), &self.namespace, &self.name).await;
        Ok(if_there(service)?.is_some_and(|service| holds(&service, address)))
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

/// The time since the creation of an object, zero when that is unknown.
fn age(object: &Value, now: Timestamp) -> SignedDuration {
    let created = parse_time(object.str_at("metadata.creationTimestamp"));
    created.map_or(SignedDuration::ZERO, |created| now.duration_since(created))
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
        Ok(current) if current.uid() == *uid && holds(&current, address) => {}
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

    const OLD: &str = "2026-01-01T00:00:00Z";
    const NEW: &str = "2026-01-01T01:00:00Z";

    fn create_service(registry: &MemoryRegistry, name: &str, ip: &str) {
        let service = json!({
            "metadata": {"name": name}, "spec": {"type": "ClusterIP", "clusterIP": ip, "clusterIPs": [ip]}
        });
        now(registry.create(&core("services"), "n", service, WriteOptions::default())).unwrap();
    }

    fn create_address(
        registry: &MemoryRegistry,
        ip: &str,
        name: &str,
        created: &str,
        change: &[(&str, &str)],
    ) {
        let mut object = ip_address_object(ip.parse().unwrap(), "n", name);
        object.set("metadata.creationTimestamp", created);
        for (path, value) in change {
            object.set(path, *value);
        }
        now(registry.create(&ip_addresses(), "", object, WriteOptions::default())).unwrap();
    }

    #[test]
    fn a_changed_service_gets_the_allocations_that_it_lacks() {
        let (registry, metrics) = (MemoryRegistry::default(), RepairMetrics::of_cluster_ips().unwrap());
        for (name, ip) in
            [("lost", "10.0.0.3"), ("odd", "10.0.0.4"), ("second", "10.0.0.5"), ("late", "10.0.0.6")]
        {
            create_service(&registry, name, ip);
        }
        create_service(&registry, "first", "10.0.0.5");
        create_address(&registry, "10.0.0.4", "odd", OLD, &[("spec.parentRef.resource", "pods")]);
        create_address(&registry, "10.0.0.5", "first", OLD, &[]);
        create_address(&registry, "10.0.0.6", "gone", OLD, &[]);
        for name in ["lost", "odd", "second", "late", "missing"] {
            now(repair_service(&registry, "n", name, &metrics)).unwrap();
        }
        let parent = |ip: &str| {
            let object = registry.stored(&ip_addresses(), "", ip).unwrap();
            ["resource", "name"]
                .map(|field| object.str_at(&format!("spec.parentRef.{field}")).to_owned())
                .join("/")
        };
        let parents = ["10.0.0.3", "10.0.0.4", "10.0.0.5", "10.0.0.6"].map(parent);
        assert_eq!(parents, ["services/lost", "services/odd", "services/first", "services/late"]);
        let counts = [Difference::Unallocated, Difference::Duplicate].map(|found| metrics.count(found));
        assert_eq!(counts, [1, 1]);
    }

    #[test]
    fn an_address_without_a_service_is_released_after_the_grace_period() {
        let (registry, metrics) = (MemoryRegistry::default(), RepairMetrics::of_cluster_ips().unwrap());
        create_service(&registry, "held", "10.0.0.2");
        create_address(&registry, "10.0.0.2", "held", OLD, &[]);
        create_address(&registry, "10.0.0.3", "gone", OLD, &[]);
        create_address(&registry, "10.0.0.4", "coming", NEW, &[]);
        create_address(&registry, "10.0.0.5", "held", OLD, &[]);
        create_address(&registry, "10.0.0.6", "pod", NEW, &[("spec.parentRef.resource", "pods")]);
        let foreign = [("metadata.labels", "")];
        create_address(&registry, "10.0.0.7", "gone", OLD, &foreign);
        let at = "2026-01-01T01:00:30Z".parse().unwrap();
        // The address, whether it stays, and the seconds after which it is looked at again.
        let rows = [
            ("10.0.0.2", true, None),
            ("10.0.0.3", false, None),
            ("10.0.0.4", true, Some(30)),
            ("10.0.0.5", false, None),
            ("10.0.0.6", false, None),
            ("10.0.0.7", true, None),
            ("10.0.0.8", false, None),
        ];
        for (ip, stays, again) in rows {
            let due = now(repair_address(&registry, ip, at, &metrics)).unwrap();
            assert_eq!(due.map(|due| due.as_secs()), again, "{ip}");
            assert_eq!(registry.stored(&ip_addresses(), "", ip).is_some(), stays, "{ip}");
        }
        assert_eq!(metrics.count(Difference::Leak), 3);
    }

    #[test]
    fn leaks_are_released_and_lost_claims_made_again() {
        let registry = MemoryRegistry::default();
        let service = |name: &str, ip: &str| create_service(&registry, name, ip);
        let address = |ip: &str, name: &str, created: &str| create_address(&registry, ip, name, created, &[]);
        let (old, new) = (OLD, NEW);
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
