//! Allocates and releases the cluster IPs and node ports of a write.

use super::cluster_ip::{self, ClusterIps, IpError};
use super::families::{self, invalid, is_unchanged_prefer_dual_stack};
use super::network::{IpFamily, PortRange, ServiceNetwork};
use super::node_port::{self, PortOperation};
use super::view::{
    CLUSTER_IP, EXTERNAL_NAME, LOAD_BALANCER, NODE_PORT, Service, allocated_cluster_ips,
    allocated_node_ports, node_port as node_port_of,
};
use pintle_go_forms::{parse_ip_sloppy, quote};
use pintle_machinery::{FieldError, FieldPath, Status, Value, ValueExt, json, meta::ObjectMeta};
use pintle_registry::{FinishFn, Registry, RequestContext};
use std::collections::BTreeMap;
use std::collections::HashSet;

/// The changes of one write: `taken` is released if the write fails, `left` if it succeeds.
#[derive(Default)]
struct Transaction {
    taken: Resources,
    left: Resources,
}

#[derive(Default)]
struct Resources {
    ips: Vec<String>,
    ports: Vec<i64>,
}

impl Resources {
    async fn release(&self, registry: &dyn Registry, range: PortRange, namespace: &str, name: &str) {
        cluster_ip::release(registry, namespace, name, &self.ips).await;
        node_port::release(registry, range, &self.ports).await;
    }
}

impl Transaction {
    fn finish(self, network: &ServiceNetwork, context: &RequestContext<'_>, name: &str) -> FinishFn {
        let (namespace, name) = (context.namespace.to_owned(), name.to_owned());
        let (range, dry_run) = (network.node_ports(), context.dry_run);
        Box::new(move |stored, registry| {
            Box::pin(async move {
                if !dry_run {
                    let resources = if stored { &self.left } else { &self.taken };
                    resources.release(registry, range, &namespace, &name).await;
                }
            })
        })
    }
}

/// Allocates the resources of a new service.
pub(super) async fn allocate_create(
    network: &ServiceNetwork,
    context: &RequestContext<'_>,
    service: &mut Value,
) -> Result<FinishFn, Status> {
    families::init(network, service, None)?;
    let name = service.name().to_owned();
    let mut transaction = Transaction::default();
    if service.needs_cluster_ip() && !service.is_headless() {
        transaction.taken.ips = allocate_cluster_ips(context, service, 0).await?;
    }
    if has_node_ports(service) || service.needs_health_check_node_port() {
        let assign = |service: &mut Value, operation: &mut PortOperation| {
            if has_node_ports(service) {
                init_node_ports(service, operation)?;
            }
            match service.needs_health_check_node_port() {
                true => assign_health_check_node_port(service, operation),
                false => Ok(()),
            }
        };
        take_ports(network, context, service, &name, &mut transaction, assign).await?;
    }
    Ok(transaction.finish(network, context, &name))
}

/// Allocates the additional resources of a changed service, and collects those it no longer needs for release.
pub(super) async fn allocate_update(
    network: &ServiceNetwork,
    context: &RequestContext<'_>,
    service: &mut Value,
    old: &Value,
) -> Result<FinishFn, Status> {
    families::init(network, service, Some(old))?;
    let name = service.name().to_owned();
    let mut transaction = Transaction::default();
    update_cluster_ips(context, service, old, &mut transaction).await?;

    let needs = (old.needs_health_check_node_port(), service.needs_health_check_node_port());
    let wants_ports = has_node_ports(service) && wants_new_node_ports(service, old);
    if wants_ports || needs == (false, true) {
        let assign = |service: &mut Value, operation: &mut PortOperation| {
            if has_node_ports(service) {
                update_node_ports(service, old, operation)?;
            }
            match needs {
                (false, true) => assign_health_check_node_port(service, operation),
                _ => Ok(()),
            }
        };
        take_ports(network, context, service, &name, &mut transaction, assign).await?;
    } else if has_node_ports(service) {
        validate_distinct(service)?;
    }
    if has_node_ports(service) || matches!(service.service_type(), EXTERNAL_NAME | CLUSTER_IP) {
        let now = if has_node_ports(service) { service.node_port_numbers() } else { Vec::new() };
        let before = if has_node_ports(old) { old.node_port_numbers() } else { Vec::new() };
        transaction.left.ports.extend(before.into_iter().filter(|port| !now.contains(port)));
    }
    if needs == (true, false) && old.health_check_node_port() != 0 {
        transaction.left.ports.push(old.health_check_node_port());
    }
    Ok(transaction.finish(network, context, &name))
}

/// Releases all resources of a deleted service.
pub(super) async fn release(network: &ServiceNetwork, context: &RequestContext<'_>, service: &Value) {
    let resources = Resources {
        ips: allocated_cluster_ips(service).into_iter().map(str::to_owned).collect(),
        ports: allocated_node_ports(service),
    };
    let range = network.node_ports();
    resources.release(context.registry, range, service.namespace(), service.name()).await;
}

/// Allocates an address for each family from index `first` on: the requested one, or any.
async fn allocate_cluster_ips(
    context: &RequestContext<'_>,
    service: &mut Value,
    first: usize,
) -> Result<Vec<String>, Status> {
    let families: Vec<String> = service.ip_families().into_iter().map(str::to_owned).collect();
    let mut ips: Vec<String> = service.cluster_ips().into_iter().map(str::to_owned).collect();
    ips.resize(families.len().max(ips.len()), String::new());
    let (namespace, name) = (context.namespace, service.name().to_owned());
    let allocator =
        ClusterIps { registry: context.registry, namespace, name: &name, dry_run: context.dry_run };
    let mut taken: Vec<String> = Vec::new();
    for index in first..families.len() {
        let family = families.get(index).and_then(|family| IpFamily::parse(family));
        let wanted = ips.get(index).cloned().unwrap_or_default();
        let Some(family) = family else { continue };
        let result = match wanted.is_empty() {
            true => allocator.allocate_next(family).await.map(|address| address.to_string()),
            false => match parse_ip_sloppy(&wanted) {
                Some(address) => allocator.allocate(address).await.map(|()| wanted.clone()),
                None => Err(IpError::Failed(Status::internal_error(format!(
                    "failed to parse service IP {}",
                    quote(&wanted)
                )))),
            },
        };
        match result {
            Ok(ip) => {
                taken.push(ip.clone());
                if let Some(place) = ips.get_mut(index) {
                    *place = ip;
                }
            }
            Err(error) => {
                if !context.dry_run {
                    cluster_ip::release(context.registry, namespace, &name, &taken).await;
                }
                return Err(ip_failure(service, &ips, &wanted, error));
            }
        }
    }
    if let Some(primary) = ips.first() {
        service.set("spec.clusterIP", primary.as_str());
    }
    service.set("spec.clusterIPs", json!(ips));
    Ok(taken)
}

fn ip_failure(service: &Value, ips: &[String], wanted: &str, error: IpError) -> Status {
    let path = FieldPath::new("spec").child("clusterIPs");
    let detail = match (wanted, &error) {
        ("", IpError::Full) => {
            let name = quote(service.name());
            return Status::internal_error(format!(
                "failed to allocate a serviceIP for Service {name}: {error}"
            ));
        }
        ("", _) => format!("failed to allocate IP: {error}"),
        _ => format!("failed to allocate IP {wanted}: {error}"),
    };
    invalid(service, vec![FieldError::invalid(&path, json!(ips), detail)])
}

async fn update_cluster_ips(
    context: &RequestContext<'_>,
    service: &mut Value,
    old: &Value,
    transaction: &mut Transaction,
) -> Result<(), Status> {
    if is_unchanged_prefer_dual_stack(service, Some(old)) {
        return Ok(());
    }
    match (old.needs_cluster_ip(), service.needs_cluster_ip()) {
        (false, true) if !service.is_headless() => {
            transaction.taken.ips = allocate_cluster_ips(context, service, 0).await?;
        }
        (true, false) if !old.is_headless() => {
            transaction.left.ips = old.cluster_ips().into_iter().map(str::to_owned).collect();
        }
        (true, true) if !old.is_headless() => match (old.ip_families().len(), service.ip_families().len()) {
            (1, 2) => transaction.taken.ips = allocate_cluster_ips(context, service, 1).await?,
            (2, 1) => {
                transaction.left.ips = old.cluster_ips().into_iter().skip(1).map(str::to_owned).collect();
            }
            _ => {}
        },
        _ => {}
    }
    Ok(())
}

fn has_node_ports(service: &Value) -> bool {
    matches!(service.service_type(), NODE_PORT | LOAD_BALANCER)
}

/// Whether a changed service needs node ports that are not allocated to it yet.
fn wants_new_node_ports(service: &Value, old: &Value) -> bool {
    let before: HashSet<i64> = old.node_port_numbers().into_iter().collect();
    service.ports().iter().map(node_port_of).any(|port| match port {
        0 => service.allocates_node_ports(),
        port => !before.contains(&port),
    })
}

/// Allocates ports. After an error, releases the resources that the write has already allocated.
async fn take_ports(
    network: &ServiceNetwork,
    context: &RequestContext<'_>,
    service: &mut Value,
    name: &str,
    transaction: &mut Transaction,
    assign: impl Fn(&mut Value, &mut PortOperation) -> Result<(), Status> + Send + Sync,
) -> Result<(), Status> {
    let range = network.node_ports();
    match node_port::allocate(context.registry, range, context.dry_run, service, assign).await {
        Ok(ports) => {
            transaction.taken.ports = ports;
            Ok(())
        }
        Err(status) => {
            if !context.dry_run {
                transaction.taken.release(context.registry, range, context.namespace, name).await;
            }
            Err(status)
        }
    }
}

/// Sets the node ports of a new service. Ports with the same number share one, unless the client requests others.
fn init_node_ports(service: &mut Value, operation: &mut PortOperation) -> Result<(), Status> {
    let allocates = service.allocates_node_ports();
    let mut by_port: BTreeMap<i64, i64> = BTreeMap::new();
    let ports = service.ports().to_vec();
    // The first requested node port of each port number.
    let mut requested: BTreeMap<i64, i64> = BTreeMap::new();
    for port in ports.iter().filter(|port| node_port_of(port) != 0) {
        requested.entry(port.i64_at("port").unwrap_or_default()).or_insert(node_port_of(port));
    }
    for (index, port) in ports.iter().enumerate() {
        let (number, node_port) = (port.i64_at("port").unwrap_or_default(), node_port_of(port));
        if node_port == 0 && !allocates {
            continue;
        }
        let shared = by_port.get(&number).copied();
        let assigned = match shared {
            None => {
                let assigned = match requested.get(&number).copied() {
                    Some(requested) => allocate_port(service, operation, index, requested)?,
                    None => allocate_any_port(operation)?,
                };
                by_port.insert(number, assigned);
                assigned
            }
            Some(shared) if node_port == 0 || node_port == shared => shared,
            Some(_) => allocate_port(service, operation, index, node_port)?,
        };
        set_node_port(service, index, assigned);
    }
    Ok(())
}

/// Sets the node ports of a changed service: keeps the allocated ones, and allocates the missing and requested ones.
fn update_node_ports(service: &mut Value, old: &Value, operation: &mut PortOperation) -> Result<(), Status> {
    let allocates = service.allocates_node_ports();
    let before: HashSet<i64> = old.node_port_numbers().into_iter().collect();
    let mut named: HashSet<i64> = HashSet::new();
    let ports = service.ports().to_vec();
    for (index, port) in ports.iter().enumerate() {
        match node_port_of(port) {
            0 if allocates => {
                let node_port = allocate_any_port(operation)?;
                set_node_port(service, index, node_port);
            }
            0 => {}
            held if before.contains(&held) || named.contains(&held) => {}
            wanted => {
                allocate_port(service, operation, index, wanted)?;
                named.insert(wanted);
            }
        }
    }
    validate_distinct(service)
}

/// Rejects duplicate node ports of one protocol.
fn validate_distinct(service: &Value) -> Result<(), Status> {
    let mut seen: HashSet<(&str, i64)> = HashSet::new();
    for port in service.ports().iter().filter(|port| node_port_of(port) != 0) {
        let key = (port.str_at("protocol"), node_port_of(port));
        if !seen.insert(key) {
            return Err(Status::unknown(format!("duplicate nodePort: {{{} {}}}", key.0, key.1)));
        }
    }
    Ok(())
}

fn assign_health_check_node_port(service: &mut Value, operation: &mut PortOperation) -> Result<(), Status> {
    match service.health_check_node_port() {
        0 => {
            let port = operation.allocate_next().map_err(|error| {
                Status::internal_error(format!("failed to allocate a HealthCheck NodePort 0: {error}"))
            })?;
            service.set("spec.healthCheckNodePort", port);
            Ok(())
        }
        port => operation.allocate(port).map_err(|error| {
            Status::internal_error(format!(
                "failed to allocate requested HealthCheck NodePort {port}: {error}"
            ))
        }),
    }
}

fn allocate_port(
    service: &Value,
    operation: &mut PortOperation,
    index: usize,
    node_port: i64,
) -> Result<i64, Status> {
    operation.allocate(node_port).map(|()| node_port).map_err(|error| {
        let path = FieldPath::new("spec").child("ports").index(index).child("nodePort");
        invalid(service, vec![FieldError::invalid(&path, node_port, error.to_string())])
    })
}

fn allocate_any_port(operation: &mut PortOperation) -> Result<i64, Status> {
    operation
        .allocate_next()
        .map_err(|error| Status::internal_error(format!("failed to allocate a nodePort: {error}")))
}

fn set_node_port(service: &mut Value, index: usize, node_port: i64) {
    if let Some(port) = service.items_at_mut("spec.ports").get_mut(index) {
        port.set("nodePort", node_port);
    }
}
