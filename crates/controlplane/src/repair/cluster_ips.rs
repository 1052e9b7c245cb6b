//! Compares `IPAddress` objects with services.

use super::metrics::{Difference, RepairMetrics};
use crate::{
    event_recorder::{EventRecorder, Warning},
    objects::{core, create_if_missing},
};
use jiff::{SignedDuration, Timestamp};
use pintle_api::core::service::{
    IpFamily, MANAGED_BY_IP_ALLOCATOR, allocated_cluster_ips, ip_address_object, ip_addresses,
    is_in_service_cidrs, publish_allocated_ips,
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
/// The time in which a create that fails, since there is such a service already, releases its address.
const REVERT_PERIOD: SignedDuration = SignedDuration::from_secs(5);

/// The objects that are repaired, and where the repair reports what it finds.
#[derive(Clone, Copy)]
pub(super) struct Repairs<'a> {
    pub(super) registry: &'a dyn Registry,
    pub(super) metrics: &'a RepairMetrics,
    pub(super) events: &'a EventRecorder,
}

/// The names of the objects that were compared, with their namespaces: `a/b`, and `/b` without one.
#[derive(Debug, Default)]
pub(super) struct Compared {
    pub(super) services: Vec<String>,
    pub(super) addresses: Vec<String>,
}

/// Allocates addresses that services hold without an allocation, and releases those that no service holds.
pub(super) async fn repair(
    repairs: Repairs<'_>,
    now: Timestamp,
    compared: &mut Compared,
) -> Result<(), Status> {
    let Repairs { registry, .. } = repairs;
    // Several services may hold an address if somebody else has written the store.
    let mut held: BTreeMap<IpAddr, Vec<Arc<Holder>>> = BTreeMap::new();
    let mut look = |service: Value| {
        let holder = Arc::new(Holder::of(&service));
        for address in allocated_cluster_ips(&service).into_iter().filter_map(parse_ip_sloppy) {
            held.entry(address).or_default().push(holder.clone());
        }
        compared.services.push(holder.to_string());
        ControlFlow::Continue(())
    };
    registry.visit(&core("services"), "", &mut look).await?;
    let mut unclaimed = held.clone();
    let (mut allocated, mut leaked) = (Vec::new(), Vec::new());
    let mut look = |object: Value| {
        let Some(address) = parse_ip_sloppy(object.name()) else { return ControlFlow::Continue(()) };
        compared.addresses.push(format!("/{}", object.name()));
        unclaimed.remove(&address);
        let is_held =
            held.get(&address).is_some_and(|services| services.iter().any(|service| service.claims(&object)));
        match is_ours(&object) && !is_held && age(&object, now) > GRACE_PERIOD {
            true => leaked.push(object),
            false => allocated.push(address),
        }
        ControlFlow::Continue(())
    };
    registry.visit(&ip_addresses(), "", &mut look).await?;
    for object in leaked {
        repairs.release_leak(&object, now).await?;
    }
    for (address, services) in unclaimed {
        for service in services {
            if repairs.claim(address, &service, now).await? {
                allocated.push(address);
                break;
            }
        }
    }
    publish_allocated_ips(registry, &allocated).await
}

/// Allocates the addresses that one service holds without an allocation. The objects may be slightly stale: an
/// object with a problem is read again before it is repaired.
pub(super) async fn repair_service(
    repairs: Repairs<'_>,
    namespace: &str,
    name: &str,
    now: Timestamp,
) -> Result<(), Status> {
    let Repairs { registry, .. } = repairs;
    let Some(service) = if_there(registry.get_cached(&core("services"), namespace, name).await)? else {
        return Ok(());
    };
    let holder = Holder::of(&service);
    for _ in invalid_cluster_ips(&service) {
        // Without the text, as in kube-apiserver.
        let note = "Cluster IP <nil> is not a valid IP; please recreate Service".to_owned();
        let warning = Warning { reason: "ClusterIPNotValid", action: "ClusterIPValidation", note };
        repairs.events.warn(registry, &service, now, warning).await;
    }
    for address in allocated_cluster_ips(&service).into_iter().filter_map(parse_ip_sloppy) {
        let family = IpFamily::of(address).as_str();
        if !is_in_service_cidrs(registry, address).await? {
            let note = format!(
                "Cluster IP [{family}]: {address} is not within any configured Service CIDR; please recreate service"
            );
            repairs.events.warn(registry, &service, now, of_service("ClusterIPOutOfRange", note)).await;
            continue;
        }
        let object_name = address.to_string();
        let is_sound = |object: &Value| {
            let of_family = object.label("ipaddress.kubernetes.io/ip-family") == Some(family);
            is_ours(object) && of_family && holder.claims(object)
        };
        let cached = if_there(registry.get_cached(&ip_addresses(), "", &object_name).await)?;
        if cached.as_ref().is_some_and(is_sound) {
            continue;
        }
        match if_there(registry.get(&ip_addresses(), "", &object_name).await)? {
            None => drop(repairs.claim(address, &holder, now).await?),
            Some(object) if is_sound(&object) => {}
            Some(object) => repairs.repair_claim(&object, address, &holder, now).await?,
        }
    }
    Ok(())
}

/// Releases an allocation that no service holds. Returns the time after which it is to be looked at again, because its
/// service may not have been written yet.
pub(super) async fn repair_address(
    repairs: Repairs<'_>,
    name: &str,
    now: Timestamp,
) -> Result<Option<SignedDuration>, Status> {
    let Repairs { registry, .. } = repairs;
    let Some(object) = if_there(registry.get_cached(&ip_addresses(), "", name).await)? else {
        return Ok(None);
    };
    let (true, Some(address)) = (is_ours(&object), parse_ip_sloppy(name)) else { return Ok(None) };
    if let Some(holder) = Holder::of_address(&object) {
        let cached = if_there(registry.get_cached(&core("services"), &holder.namespace, &holder.name).await)?;
        let grace = match &cached {
            Some(service) if holds(service, address) => return Ok(None),
            Some(service) => grace(service, &object, address),
            None => Some(GRACE_PERIOD),
        };
        let left = grace.map(|grace| grace.saturating_sub(age(&object, now)));
        if let Some(left) = left.filter(|left| !left.is_negative()) {
            return Ok(Some(left));
        }
        if holder.current(registry).await?.is_some_and(|service| holds(&service, address)) {
            return Ok(None);
        }
    }
    repairs.release_leak(&object, now).await?;
    Ok(None)
}

impl Repairs<'_> {
    /// Repairs the `IPAddress` object of an address that a service holds, and that does not refer to it.
    async fn repair_claim(
        &self,
        object: &Value,
        address: IpAddr,
        holder: &Holder,
        now: Timestamp,
    ) -> Result<(), Status> {
        let Some(service) = holder.current(self.registry).await?.filter(|service| holds(service, address))
        else {
            return Ok(());
        };
        let family = IpFamily::of(address).as_str();
        match Holder::of_address(object) {
            Some(other) if !holder.claims(object) => match other.current(self.registry).await? {
                Some(other) if holds(&other, address) => {
                    self.metrics.found(Difference::Duplicate);
                    tracing::error!(%address, service = %holder, "another service holds the cluster IP");
                    let note = format!(
                        "Cluster IP [{family}]:{address} was assigned to multiple services; please recreate service"
                    );
                    let warning = of_service("ClusterIPAlreadyAllocated", note);
                    self.events.warn(self.registry, &service, now, warning).await;
                    return Ok(());
                }
                // The other service may be about to hold it.
                Some(_) => return Ok(()),
                None => {}
            },
            Some(_) | None => {}
        }
        if !holder.claims(object) {
            let note = format!(
                "the ClusterIP [{family}]: {address} for Service {holder} has a wrong reference; repairing"
            );
            self.events.warn(self.registry, &service, now, of_service("ClusterIPNotAllocated", note)).await;
        }
        release(self.registry, object).await?;
        let Holder { namespace, name, .. } = holder;
        let object = ip_address_object(address, namespace, name);
        create_if_missing(self.registry, &ip_addresses(), "", object).await.map(drop)
    }

    /// Releases an allocation that no service holds.
    async fn release_leak(&self, object: &Value, now: Timestamp) -> Result<(), Status> {
        self.metrics.found(Difference::Leak);
        let name = object.name();
        let (reason, note) = match Holder::of_address(object) {
            Some(holder) if holder.current(self.registry).await?.is_none() => {
                let note =
                    format!("IPAddress: {name} for Service {holder} appears to have leaked: cleaning up");
                ("IPAddressNotAllocated", note)
            }
            Some(holder) => {
                let note =
                    format!("IPAddress: {name} for Service {holder} has a wrong reference; cleaning up");
                ("IPAddressWrongReference", note)
            }
            None => {
                let of = |field: &str| object.str_at(&format!("spec.parentRef.{field}"));
                let [group, resource, namespace, parent] = ["group", "resource", "namespace", "name"].map(of);
                let note = format!(
                    "IPAddress {name} appears to have been modified, not referencing a Service \
                     &ParentReference{{Group:{group},Resource:{resource},Namespace:{namespace},Name:{parent},}}: cleaning up"
                );
                ("IPAddressNotAllocated", note)
            }
        };
        let warning = Warning { reason, action: "IPAddressAllocation", note };
        self.events.warn(self.registry, object, now, warning).await;
        release(self.registry, object).await
    }

    /// Allocates the address of a service; returns whether it was not allocated.
    async fn claim(&self, address: IpAddr, holder: &Holder, now: Timestamp) -> Result<bool, Status> {
        // The service may have been deleted since it was listed, and its address released.
        let current = holder.current(self.registry).await?;
        let Some(service) = current.filter(|service| service.uid() == holder.uid && holds(service, address))
        else {
            return Ok(false);
        };
        if !is_in_service_cidrs(self.registry, address).await? {
            tracing::error!(%address, service = %holder, "the cluster IP is in no service CIDR");
            return Ok(false);
        }
        let object = ip_address_object(address, &holder.namespace, &holder.name);
        let created = create_if_missing(self.registry, &ip_addresses(), "", object).await?;
        if created {
            self.metrics.found(Difference::Unallocated);
            tracing::info!(%address, service = %holder, "claimed a cluster IP anew");
            let note = format!(
                "Cluster IP [{}]: {address} is not allocated; repairing",
                IpFamily::of(address).as_str()
            );
            self.events.warn(self.registry, &service, now, of_service("ClusterIPNotAllocated", note)).await;
        }
        Ok(created)
    }
}

/// A warning about the address of a service.
fn of_service(reason: &'static str, note: String) -> Warning {
    Warning { reason, action: "ClusterIPAllocation", note }
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

/// The age until which an address stays that its service does not hold: an update may be about to give it to the service,
/// or a create of another service of this name about to fail.
fn grace(service: &Value, object: &Value, address: IpAddr) -> Option<SignedDuration> {
    let family = IpFamily::of(address);
    let held: Vec<IpAddr> = allocated_cluster_ips(service).into_iter().filter_map(parse_ip_sloppy).collect();
    let is_extended = !held.is_empty() && held.iter().all(|held| IpFamily::of(*held) != family);
    if service.str_at("spec.type") == "ExternalName" || is_extended {
        return Some(GRACE_PERIOD);
    }
    let created = |object: &Value| parse_time(object.str_at("metadata.creationTimestamp"));
    (created(object) > created(service)).then_some(REVERT_PERIOD)
}

/// The cluster IPs that are none: somebody else has written the store.
fn invalid_cluster_ips(service: &Value) -> impl Iterator<Item = &str> {
    let is_set = !["", "None"].contains(&service.str_at("spec.clusterIP"));
    let ips = service.items_at("spec.clusterIPs").iter().filter(move |_| is_set).filter_map(Value::as_str);
    ips.filter(|ip| parse_ip_sloppy(ip).is_none())
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

    /// The service as it is now; `None` when there is none.
    async fn current(&self, registry: &dyn Registry) -> Result<Option<Value>, Status> {
        if_there(registry.get(&core("services"), &self.namespace, &self.name).await)
    }

    /// Whether an `IPAddress` object is of this service.
    fn claims(&self, object: &Value) -> bool {
        Holder::of_address(object)
            .is_some_and(|holder| (&holder.namespace, &holder.name) == (&self.namespace, &self.name))
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

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_api::core::service::service_cidrs;
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
    fn an_address_of_two_services_stays_with_the_one_that_it_refers_to() {
        for owner in ["first", "second"] {
            let (registry, metrics) = (MemoryRegistry::default(), RepairMetrics::of_cluster_ips().unwrap());
            let events = EventRecorder::new("c", "h");
            let repairs = Repairs { registry: &registry, metrics: &metrics, events: &events };
            for name in ["first", "second"] {
                create_service(&registry, name, "10.0.0.5");
            }
            create_address(&registry, "10.0.0.5", owner, OLD, &[]);
            now(repair(repairs, NEW.parse().unwrap(), &mut Compared::default())).unwrap();
            let object = registry.stored(&ip_addresses(), "", "10.0.0.5").unwrap();
            assert_eq!(object.str_at("spec.parentRef.name"), owner);
            assert_eq!(metrics.count(Difference::Leak), 0);
        }
    }

    #[test]
    fn a_changed_service_gets_the_allocations_that_it_lacks() {
        let (registry, metrics) = (MemoryRegistry::default(), RepairMetrics::of_cluster_ips().unwrap());
        let events = EventRecorder::new("c", "h");
        let repairs = Repairs { registry: &registry, metrics: &metrics, events: &events };
        for (name, ip) in
            [("lost", "10.0.0.3"), ("odd", "10.0.0.4"), ("second", "10.0.0.5"), ("late", "10.0.0.6")]
        {
            create_service(&registry, name, ip);
        }
        create_service(&registry, "first", "10.0.0.5");
        create_address(&registry, "10.0.0.4", "odd", OLD, &[("spec.parentRef.resource", "pods")]);
        create_address(&registry, "10.0.0.5", "first", OLD, &[]);
        create_address(&registry, "10.0.0.6", "gone", OLD, &[]);
        create_service(&registry, "unlabelled", "10.0.0.7");
        create_address(&registry, "10.0.0.7", "unlabelled", OLD, &[("metadata.labels", "")]);
        for name in ["lost", "odd", "second", "late", "unlabelled", "missing"] {
            now(repair_service(repairs, "n", name, OLD.parse().unwrap())).unwrap();
        }
        let parent = |ip: &str| {
            let object = registry.stored(&ip_addresses(), "", ip).unwrap();
            ["resource", "name"]
                .map(|field| object.str_at(&format!("spec.parentRef.{field}")).to_owned())
                .join("/")
        };
        let parents = ["10.0.0.3", "10.0.0.4", "10.0.0.5", "10.0.0.6"].map(parent);
        assert_eq!(parents, ["services/lost", "services/odd", "services/first", "services/late"]);
        let labelled = registry.stored(&ip_addresses(), "", "10.0.0.7").unwrap();
        assert_eq!(labelled.label("ipaddress.kubernetes.io/ip-family"), Some("IPv4"));
        let counts = [Difference::Unallocated, Difference::Duplicate].map(|found| metrics.count(found));
        assert_eq!(counts, [1, 1]);
        let told = now(registry.list(&core("events"), "n")).unwrap();
        let told: Vec<_> =
            told.iter().map(|event| [event.str_at("reason"), event.str_at("message")]).collect();
        let expected = [
            [
                "ClusterIPNotAllocated",
                "the ClusterIP [IPv4]: 10.0.0.6 for Service n/late has a wrong reference; repairing",
            ],
            ["ClusterIPNotAllocated", "Cluster IP [IPv4]: 10.0.0.3 is not allocated; repairing"],
            [
                "ClusterIPNotAllocated",
                "the ClusterIP [IPv4]: 10.0.0.4 for Service n/odd has a wrong reference; repairing",
            ],
            [
                "ClusterIPAlreadyAllocated",
                "Cluster IP [IPv4]:10.0.0.5 was assigned to multiple services; please recreate service",
            ],
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn a_cluster_ip_that_is_none_is_told() {
        let (registry, metrics) = (MemoryRegistry::default(), RepairMetrics::of_cluster_ips().unwrap());
        let events = EventRecorder::new("c", "h");
        let repairs = Repairs { registry: &registry, metrics: &metrics, events: &events };
        create_service(&registry, "odd", "10.0.0");
        create_service(&registry, "headless", "None");
        for name in ["odd", "headless"] {
            now(repair_service(repairs, "n", name, OLD.parse().unwrap())).unwrap();
        }
        let told = now(registry.list(&core("events"), "n")).unwrap();
        let told: Vec<_> =
            told.iter().map(|event| [event.str_at("reason"), event.str_at("message")]).collect();
        let note = "Cluster IP <nil> is not a valid IP; please recreate Service";
        assert_eq!(told, [["ClusterIPNotValid", note]]);
    }

    #[test]
    fn an_address_in_no_block_is_told_and_gets_no_allocation() {
        let (registry, metrics) = (MemoryRegistry::default(), RepairMetrics::of_cluster_ips().unwrap());
        let events = EventRecorder::new("c", "h");
        let repairs = Repairs { registry: &registry, metrics: &metrics, events: &events };
        let block = json!({"metadata": {"name": "kubernetes"}, "spec": {"cidrs": ["10.0.0.0/24"]}});
        now(registry.create(&service_cidrs(), "", block, WriteOptions::default())).unwrap();
        for (name, ip) in [("in", "10.0.0.3"), ("out", "10.0.1.3"), ("six", "fd00::3")] {
            create_service(&registry, name, ip);
            now(repair_service(repairs, "n", name, OLD.parse().unwrap())).unwrap();
        }
        let mut compared = Compared::default();
        now(repair(repairs, OLD.parse().unwrap(), &mut compared)).unwrap();
        assert_eq!(compared.services, ["n/in", "n/out", "n/six"]);
        assert_eq!(compared.addresses, ["/10.0.0.3"]);
        let left = now(registry.list(&ip_addresses(), "")).unwrap();
        assert_eq!(left.iter().map(|object| object.name()).collect::<Vec<_>>(), ["10.0.0.3"]);
        let told = now(registry.list(&core("events"), "n")).unwrap();
        let mut told: Vec<_> = told.iter().map(|event| event.str_at("message")).collect();
        told.sort_unstable();
        let expected = [
            "Cluster IP [IPv4]: 10.0.0.3 is not allocated; repairing",
            "Cluster IP [IPv4]: 10.0.1.3 is not within any configured Service CIDR; please recreate service",
            "Cluster IP [IPv6]: fd00::3 is not within any configured Service CIDR; please recreate service",
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn an_address_without_a_service_is_released_after_the_grace_period() {
        let (registry, metrics) = (MemoryRegistry::default(), RepairMetrics::of_cluster_ips().unwrap());
        let events = EventRecorder::new("c", "h");
        let repairs = Repairs { registry: &registry, metrics: &metrics, events: &events };
        create_service(&registry, "held", "10.0.0.2");
        let outer = json!({"metadata": {"name": "outer"}, "spec": {"type": "ExternalName"}});
        now(registry.create(&core("services"), "n", outer, WriteOptions::default())).unwrap();
        create_address(&registry, "10.0.0.2", "held", OLD, &[]);
        create_address(&registry, "10.0.0.3", "gone", OLD, &[]);
        create_address(&registry, "10.0.0.4", "coming", NEW, &[]);
        create_address(&registry, "10.0.0.5", "held", OLD, &[]);
        create_address(&registry, "10.0.0.6", "pod", NEW, &[("spec.parentRef.resource", "pods")]);
        let foreign = [("metadata.labels", "")];
        create_address(&registry, "10.0.0.7", "gone", OLD, &foreign);
        // A second family may be added to a service, and one of an external name may get an address.
        create_address(&registry, "10.0.0.9", "outer", NEW, &[]);
        create_address(&registry, "fd00::9", "held", NEW, &[]);
        create_address(&registry, "10.0.0.10", "held", "2026-01-01T01:00:27Z", &[]);
        create_address(&registry, "10.0.0.11", "held", NEW, &[]);
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
            ("10.0.0.9", true, Some(30)),
            ("fd00::9", true, Some(30)),
            ("10.0.0.10", true, Some(2)),
            ("10.0.0.11", false, None),
        ];
        for (ip, stays, again) in rows {
            let due = now(repair_address(repairs, ip, at)).unwrap();
            assert_eq!(due.map(|due| due.as_secs()), again, "{ip}");
            assert_eq!(registry.stored(&ip_addresses(), "", ip).is_some(), stays, "{ip}");
        }
        assert_eq!(metrics.count(Difference::Leak), 4);
        let told = now(registry.list(&core("events"), "default")).unwrap();
        let told: Vec<&str> = told.iter().map(|event| event.str_at("message")).collect();
        let expected = [
            "IPAddress: 10.0.0.11 for Service n/held has a wrong reference; cleaning up",
            "IPAddress: 10.0.0.3 for Service n/gone appears to have leaked: cleaning up",
            "IPAddress: 10.0.0.5 for Service n/held has a wrong reference; cleaning up",
            "IPAddress 10.0.0.6 appears to have been modified, not referencing a Service \
             &ParentReference{Group:,Resource:pods,Namespace:n,Name:pod,}: cleaning up",
        ];
        assert_eq!(told, expected);
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

        let (metrics, events) = (RepairMetrics::of_cluster_ips().unwrap(), EventRecorder::new("c", "h"));
        let repairs = Repairs { registry: &registry, metrics: &metrics, events: &events };
        let at = "2026-01-01T01:00:30Z".parse().unwrap();
        now(repair(repairs, at, &mut Compared::default())).unwrap();
        assert_eq!((metrics.count(Difference::Leak), metrics.count(Difference::Unallocated)), (2, 1));
        let left = now(registry.list(&ip_addresses(), "")).unwrap();
        let names: Vec<&str> = left.iter().map(|object| object.name()).collect();
        assert_eq!(names, ["10.0.0.2", "10.0.0.3", "10.0.0.5", "10.0.0.7"]);
        assert_eq!(left[1].str_at("spec.parentRef.name"), "lost");
    }
}
