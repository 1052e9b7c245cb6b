//! Allocates cluster IPs: an `IPAddress` object for each, in a block of a `ServiceCIDR`
//! (<https://kubernetes.io/docs/reference/networking/virtual-ips/#ip-address-objects>).
//!
//! Creating the object allocates the address, because the store accepts only one creation. Nothing is kept in memory.

use super::metrics::{AllocationMetrics, Scope};
use super::network::{AddressRange, IpFamily};
use pintle_go_forms::{Cidr, parse_ip_sloppy};
use pintle_machinery::{GroupResource, Status, StatusReason, Value, ValueExt, json, meta::ObjectMeta};
use pintle_registry::{DeleteOptions, Preconditions, Registry, WriteOptions};
use std::{collections::BTreeSet, fmt, net::IpAddr, ops::ControlFlow, time::Instant};

/// The value of the managed-by label of the `IPAddress` objects for services.
pub const MANAGED_BY_IP_ALLOCATOR: &str = "ipallocator.k8s.io";

const NETWORKING_GROUP: &str = "networking.k8s.io";

/// The number of candidates to try before the allocated addresses are listed.
const BLIND_TRIES: usize = 8;

/// The resource of allocated addresses.
pub fn ip_addresses() -> GroupResource {
    GroupResource::new(NETWORKING_GROUP, "ipaddresses")
}

/// The resource of the address blocks for services.
pub fn service_cidrs() -> GroupResource {
    GroupResource::new(NETWORKING_GROUP, "servicecidrs")
}

/// The object that allocates an address to a service.
pub fn ip_address_object(address: IpAddr, namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "IPAddress",
        "metadata": {
            "name": address.to_string(),
            "labels": {
                "ipaddress.kubernetes.io/ip-family": IpFamily::of(address).as_str(),
                "ipaddress.kubernetes.io/managed-by": MANAGED_BY_IP_ALLOCATOR,
            },
        },
        "spec": {"parentRef": {"resource": "services", "namespace": namespace, "name": name}},
    })
}

/// The reason why an address is not allocated, with the API's message.
#[derive(Debug)]
pub(super) enum IpError {
    Full,
    Allocated,
    MismatchedNetwork,
    NotInRange(IpAddr, String),
    Failed(Status),
}

impl fmt::Display for IpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IpError::Full => f.write_str("range is full"),
            IpError::Allocated => f.write_str("provided IP is already allocated"),
            IpError::MismatchedNetwork => {
                f.write_str("the provided network does not match the current range")
            }
            IpError::NotInRange(ip, range) => write!(
                f,
                "the provided IP ({ip}) is not in the valid range. The range of valid IPs is {range}"
            ),
            IpError::Failed(status) => f.write_str(&status.message),
        }
    }
}

/// Allocates addresses for one service.
pub(super) struct ClusterIps<'a> {
    pub(super) registry: &'a dyn Registry,
    pub(super) namespace: &'a str,
    pub(super) name: &'a str,
    pub(super) dry_run: bool,
}

impl ClusterIps<'_> {
    /// Allocates any free address of the family. A dry run allocates none, and returns a block's network address.
    pub(super) async fn allocate_next(&self, family: IpFamily) -> Result<IpAddr, IpError> {
        let cidrs = self.ready_cidrs(family).await?;
        if self.dry_run {
            return cidrs.first().map(|cidr| cidr.network()).ok_or(IpError::Full);
        }
        for cidr in cidrs {
            let started = Instant::now();
            let range = AddressRange::of(cidr);
            let mut tried = 0;
            let mut taken: Option<BTreeSet<String>> = None;
            for address in range.candidates() {
                if taken.as_ref().is_some_and(|taken| taken.contains(&address.to_string())) {
                    continue;
                }
                match self.claim(address).await {
                    Ok(()) => {
                        note(|metrics| metrics.ip_allocated(cidr, Scope::Dynamic, started.elapsed()));
                        self.count(cidr).await;
                        return Ok(address);
                    }
                    Err(IpError::Allocated) => {}
                    Err(error) => return Err(error),
                }
                tried += 1;
                if tried == BLIND_TRIES {
                    let mut names = BTreeSet::new();
                    let mut note_name = |object: Value| {
                        names.insert(object.name().to_owned());
                        ControlFlow::Continue(())
                    };
                    self.registry
                        .visit(&ip_addresses(), "", &mut note_name)
                        .await
                        .map_err(IpError::Failed)?;
                    taken = Some(names);
                }
            }
            note(|metrics| metrics.ip_failed(cidr, Scope::Dynamic));
        }
        Err(IpError::Full)
    }

    /// Allocates this address. A dry run only checks that it is in a range.
    pub(super) async fn allocate(&self, address: IpAddr) -> Result<(), IpError> {
        let cidrs = self.ready_cidrs(IpFamily::of(address)).await?;
        let cidr = cidrs.iter().find(|cidr| AddressRange::of(**cidr).contains(address));
        match (cidr, self.dry_run) {
            (Some(cidr), false) => {
                let started = Instant::now();
                let claimed = self.claim(address).await;
                note(|metrics| match claimed {
                    Ok(()) => metrics.ip_allocated(*cidr, Scope::Static, started.elapsed()),
                    Err(_) => metrics.ip_failed(*cidr, Scope::Static),
                });
                self.count(*cidr).await;
                claimed
            }
            (Some(_), true) => Ok(()),
            (None, false) => Err(IpError::MismatchedNetwork),
            (None, true) => Err(match cidrs.first() {
                Some(cidr) => IpError::NotInRange(address, cidr.canonical()),
                None => IpError::MismatchedNetwork,
            }),
        }
    }

    async fn claim(&self, address: IpAddr) -> Result<(), IpError> {
        let object = ip_address_object(address, self.namespace, self.name);
        let options = WriteOptions { field_manager: "kube-apiserver".to_owned(), ..WriteOptions::default() };
        match self.registry.create(&ip_addresses(), "", object, options).await {
            Ok(_) => Ok(()),
            Err(status) if status.reason == StatusReason::AlreadyExists => Err(IpError::Allocated),
            Err(status) => Err(IpError::Failed(status)),
        }
    }

    /// Counts the addresses of a block when one of them is used for the first time.
    async fn count(&self, cidr: Cidr) {
        if AllocationMetrics::of_process().is_none_or(|metrics| metrics.knows(cidr)) {
            return;
        }
        // Metrics are no reason to fail; the next allocation tries again.
        let mut addresses = Vec::new();
        let mut note_address = |object: Value| {
            addresses.extend(parse_ip_sloppy(object.name()));
            ControlFlow::Continue(())
        };
        if self.registry.visit(&ip_addresses(), "", &mut note_address).await.is_err() {
            return;
        }
        let _ = publish_allocated_ips(self.registry, &addresses).await;
    }

    /// The blocks of the family in `ServiceCIDR` objects that are ready.
    async fn ready_cidrs(&self, family: IpFamily) -> Result<Vec<Cidr>, IpError> {
        let cidrs = ready_cidrs(self.registry).await.map_err(IpError::Failed)?;
        Ok(cidrs.into_iter().filter(|cidr| IpFamily::of(cidr.address) == family).collect())
    }
}

/// The blocks from which addresses are allocated.
async fn ready_cidrs(registry: &dyn Registry) -> Result<Vec<Cidr>, Status> {
    let objects = registry.list(&service_cidrs(), "").await?;
    let ready = objects.iter().filter(|object| is_ready(object));
    let cidrs = ready.flat_map(|object| object.items_at("spec.cidrs")).filter_map(Value::as_str);
    Ok(cidrs.filter_map(Cidr::parse_sloppy).collect())
}

/// Whether an address is in a block, ready or not. As long as there is no block, every address counts as such.
///
/// # Errors
/// When the blocks cannot be read.
pub async fn is_in_service_cidrs(registry: &dyn Registry, address: IpAddr) -> Result<bool, Status> {
    let objects = registry.list(&service_cidrs(), "").await?;
    let cidrs = objects.iter().flat_map(|object| object.items_at("spec.cidrs")).filter_map(Value::as_str);
    Ok(objects.is_empty() || cidrs.filter_map(Cidr::parse_sloppy).any(|cidr| cidr.contains(address)))
}

/// Publishes how many of these allocated addresses are in each block.
///
/// # Errors
/// When the blocks cannot be read.
pub async fn publish_allocated_ips(registry: &dyn Registry, addresses: &[IpAddr]) -> Result<(), Status> {
    let cidrs = ready_cidrs(registry).await?;
    let count = |cidr: Cidr| {
        let range = AddressRange::of(cidr);
        addresses.iter().filter(|address| range.contains(**address)).count()
    };
    let counts: Vec<(Cidr, usize)> = cidrs.into_iter().map(|cidr| (cidr, count(cidr))).collect();
    note(|metrics| metrics.set_ips(&counts));
    Ok(())
}

fn note(event: impl FnOnce(&AllocationMetrics)) {
    if let Some(metrics) = AllocationMetrics::of_process() {
        event(metrics);
    }
}

/// Whether a `ServiceCIDR` is ready: it is not terminating, and its `Ready` condition is true or absent.
fn is_ready(service_cidr: &Value) -> bool {
    let conditions = service_cidr.items_at("status.conditions");
    let ready = conditions.iter().find(|condition| condition.str_at("type") == "Ready");
    !service_cidr.is_terminating() && ready.is_none_or(|condition| condition.str_at("status") == "True")
}

/// Releases the addresses of a service, except those allocated to another one. Failures are left to the repair
/// controller, because the write of the service is already complete.
pub(super) async fn release(registry: &dyn Registry, namespace: &str, name: &str, ips: &[String]) {
    let mut released = Vec::new();
    for ip in ips {
        let Some(address) = parse_ip_sloppy(ip) else { continue };
        let object_name = address.to_string();
        let Ok(object) = registry.get(&ip_addresses(), "", &object_name).await else { continue };
        let parent = object.at("spec.parentRef").unwrap_or(&Value::Null);
        if (parent.str_at("resource"), parent.str_at("namespace"), parent.str_at("name"))
            != ("services", namespace, name)
        {
            continue;
        }
        let options = DeleteOptions {
            preconditions: Preconditions::uid(object.uid()).without_empty(),
            ..DeleteOptions::default()
        };
        // A failure is repaired later.
        if registry.delete(&ip_addresses(), "", &object_name, options).await.is_ok() {
            released.push(address);
        }
    }
    if released.is_empty() {
        return;
    }
    let cidrs = ready_cidrs(registry).await.unwrap_or_default();
    for address in released {
        let cidr = cidrs.iter().find(|cidr| AddressRange::of(**cidr).contains(address));
        note(|metrics| cidr.into_iter().for_each(|cidr| metrics.ip_released(*cidr)));
    }
}
