//! Allocates node ports: bits of one `RangeAllocation` object, changed by compare-and-swap.
//!
//! The storage key (`ranges/servicenodeports`) and format are those of kube-apiserver, so both can use one store.
//! `data` is a big-endian number, in which bit n represents the port at offset n of `range`.

use super::metrics::{AllocationMetrics, Scope};
use super::network::{PortRange, shuffled_start};
use base64::{Engine, engine::general_purpose::STANDARD};
use pintle_machinery::{GroupResource, Status, StatusReason, Value, ValueExt, json};
use pintle_registry::{Registry, WriteOptions};
use std::collections::HashSet;
use std::fmt;

/// The name of the object that stores the allocated node ports.
pub const RANGE_ALLOCATION_NAME: &str = "servicenodeports";

/// The resource of that object, which is not served to clients.
pub fn node_port_allocations() -> GroupResource {
    GroupResource::new("", "servicenodeportallocations")
}

/// The object that stores these ports as allocated.
pub fn range_allocation_object(ports: &PortSet) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "RangeAllocation",
        "metadata": {"name": RANGE_ALLOCATION_NAME},
        "range": ports.range.to_string(),
        "data": ports.encode(),
    })
}

/// The allocated ports of a range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortSet {
    range: PortRange,
    taken: Vec<bool>,
}

impl PortSet {
    /// A set without allocated ports.
    pub fn new(range: PortRange) -> PortSet {
        PortSet { range, taken: vec![false; range.size()] }
    }

    /// Decodes the ports of `range` that the stored object has allocated. The stored range differs if the server's
    /// options have changed.
    pub fn decode(range: PortRange, object: &Value) -> PortSet {
        let mut ports = PortSet::new(range);
        let stored_range: PortRange = object.str_at("range").parse().unwrap_or(range);
        let data = STANDARD.decode(object.str_at("data")).unwrap_or_default();
        for (byte_index, byte) in data.iter().rev().enumerate() {
            for bit in (0..8).filter(|bit| byte >> bit & 1 == 1) {
                let offset = byte_index * 8 + bit;
                if offset < stored_range.size() {
                    ports.set(stored_range.port(offset).into(), true);
                }
            }
        }
        ports
    }

    fn encode(&self) -> String {
        let bytes = self.taken.chunks(8).map(|bits| {
            bits.iter().enumerate().fold(0u8, |byte, (bit, taken)| byte | u8::from(*taken) << bit)
        });
        let mut bytes: Vec<u8> = bytes.collect();
        while bytes.last() == Some(&0) {
            bytes.pop();
        }
        bytes.reverse();
        STANDARD.encode(bytes)
    }

    /// Whether the port is allocated. False outside the range.
    pub fn contains(&self, port: i64) -> bool {
        self.range.offset(port).and_then(|offset| self.taken.get(offset)).is_some_and(|taken| *taken)
    }

    /// Allocates or releases a port. Has no effect outside the range.
    pub fn set(&mut self, port: i64, taken: bool) {
        if let Some(place) = self.range.offset(port).and_then(|offset| self.taken.get_mut(offset)) {
            *place = taken;
        }
    }

    /// All allocated ports, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = i64> + '_ {
        let taken = self.taken.iter().enumerate().filter(|(_, taken)| **taken);
        taken.map(|(offset, _)| i64::from(self.range.port(offset)))
    }

    /// A free port: the first from a random offset, in the static band only if no other is free.
    fn free_port(&self) -> Option<i64> {
        let (band, size) = (self.range.static_band() as u128, self.range.size() as u128);
        let mut candidates = shuffled_start(band, size).chain(shuffled_start(0, band));
        let is_free = |offset: &usize| self.taken.get(*offset) == Some(&false);
        let offset = candidates.find_map(|offset| usize::try_from(offset).ok().filter(is_free))?;
        Some(self.range.port(offset).into())
    }
}

/// The reason why a port is not allocated, with the API's message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PortError {
    Full,
    Allocated,
    NotInRange(PortRange),
}

impl fmt::Display for PortError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PortError::Full => f.write_str("range is full"),
            PortError::Allocated => f.write_str("provided port is already allocated"),
            PortError::NotInRange(range) => {
                write!(f, "provided port is not in the valid range. The range of valid ports is {range}")
            }
        }
    }
}

/// The allocations of one write.
pub(super) struct PortOperation {
    ports: PortSet,
    dry_run: bool,
    /// In the order of allocation.
    allocated: Vec<i64>,
    taken: HashSet<i64>,
    /// The highest allocated port.
    highest: Option<i64>,
    /// How many of the allocated ports the client chose.
    chosen: u64,
}

impl PortOperation {
    fn new(ports: PortSet, dry_run: bool) -> PortOperation {
        PortOperation {
            ports,
            dry_run,
            allocated: Vec::new(),
            taken: HashSet::new(),
            highest: None,
            chosen: 0,
        }
    }

    /// Allocates this port. A dry run does not check that it is in the range.
    pub(super) fn allocate(&mut self, port: i64) -> Result<(), PortError> {
        if !self.dry_run && self.ports.range.offset(port).is_none() {
            return Err(self.failed(Scope::Static, PortError::NotInRange(self.ports.range)));
        }
        if self.ports.contains(port) || self.taken.contains(&port) {
            return Err(self.failed(Scope::Static, PortError::Allocated));
        }
        self.take(port);
        self.chosen += 1;
        Ok(())
    }

    fn failed(&self, scope: Scope, error: PortError) -> PortError {
        if !self.dry_run {
            note(|metrics| metrics.port_failed(scope));
        }
        error
    }

    fn take(&mut self, port: i64) {
        self.ports.set(port, true);
        self.allocated.push(port);
        self.taken.insert(port);
        self.highest = self.highest.max(Some(port));
    }

    /// Allocates any free port. A dry run returns a made-up port above 32768.
    pub(super) fn allocate_next(&mut self) -> Result<i64, PortError> {
        let port = match self.dry_run {
            true => self.highest.unwrap_or(32768).max(0) + 1,
            false => match self.ports.free_port() {
                Some(port) => port,
                None => return Err(self.failed(Scope::Dynamic, PortError::Full)),
            },
        };
        self.take(port);
        Ok(port)
    }
}

/// Allocates ports for an object: all that `assign` allocates, or none. Returns them in the order of allocation. After
/// a conflict with another writer, `assign` is called again with the original object.
pub(super) async fn allocate(
    registry: &dyn Registry,
    range: PortRange,
    dry_run: bool,
    object: &mut Value,
    assign: impl Fn(&mut Value, &mut PortOperation) -> Result<(), Status> + Send + Sync,
) -> Result<Vec<i64>, Status> {
    if dry_run {
        let stored = match registry.get(&node_port_allocations(), "", RANGE_ALLOCATION_NAME).await {
            Ok(stored) => stored,
            Err(status) if status.reason == StatusReason::NotFound => Value::Null,
            Err(status) => return Err(status),
        };
        let mut operation = PortOperation::new(PortSet::decode(range, &stored), true);
        assign(object, &mut operation)?;
        return Ok(operation.allocated);
    }
    let before = object.clone();
    let (mut allocated, mut chosen) = (Vec::new(), 0);
    update(registry, range, |ports| {
        let mut candidate = before.clone();
        let mut operation = PortOperation::new(ports, false);
        assign(&mut candidate, &mut operation)?;
        *object = candidate;
        (allocated, chosen) = (operation.allocated, operation.chosen);
        Ok(operation.ports)
    })
    .await?;
    note(|metrics| {
        metrics.ports_allocated(Scope::Static, chosen);
        metrics.ports_allocated(Scope::Dynamic, (allocated.len() as u64).saturating_sub(chosen));
    });
    Ok(allocated)
}

/// Releases ports. Failures are left to the repair controller, because the write of the service is already complete.
pub(super) async fn release(registry: &dyn Registry, range: PortRange, ports: &[i64]) {
    if ports.is_empty() {
        return;
    }
    let _repaired_later = update(registry, range, |mut set| {
        ports.iter().for_each(|port| set.set(*port, false));
        Ok(set)
    })
    .await;
}

async fn update(
    registry: &dyn Registry,
    range: PortRange,
    mut change: impl FnMut(PortSet) -> Result<PortSet, Status> + Send,
) -> Result<(), Status> {
    let resource = node_port_allocations();
    loop {
        let mut used = 0;
        let swap = |mut object: Value| {
            let ports = change(PortSet::decode(range, &object))?;
            used = ports.iter().count();
            object.set("range", range.to_string());
            object.set("data", ports.encode());
            Ok(object)
        };
        let options = WriteOptions::default();
        match registry.update(&resource, "", RANGE_ALLOCATION_NAME, Box::new(swap), options).await {
            Ok(_) => {
                note(|metrics| metrics.set_ports(used, range.size()));
                return Ok(());
            }
            Err(status) if is_missing(&status) => {
                let object = range_allocation_object(&PortSet::new(range));
                match registry.create(&resource, "", object, WriteOptions::default()).await {
                    Err(status) if status.reason != StatusReason::AlreadyExists => return Err(status),
                    _ => {}
                }
            }
            Err(status) => return Err(status),
        }
    }
}

/// Publishes how many ports are allocated.
pub fn publish_allocated_ports(ports: &PortSet) {
    note(|metrics| metrics.set_ports(ports.iter().count(), ports.range.size()));
}

fn note(event: impl FnOnce(&AllocationMetrics)) {
    if let Some(metrics) = AllocationMetrics::of_process() {
        event(metrics);
    }
}

fn is_missing(status: &Status) -> bool {
    let details = status.details.as_ref();
    status.reason == StatusReason::NotFound
        && details.is_some_and(|details| details.name == RANGE_ALLOCATION_NAME)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stored_form_is_a_big_endian_number() {
        let range: PortRange = "30000-30019".parse().unwrap();
        let mut ports = PortSet::new(range);
        for port in [30000, 30003, 30017, 29999, 30020] {
            ports.set(port, true);
        }
        let object = range_allocation_object(&ports);
        assert_eq!(object["data"], STANDARD.encode([0b10, 0, 0b1001]));
        assert_eq!(PortSet::decode(range, &object), ports);
        assert_eq!(ports.iter().collect::<Vec<_>>(), [30000, 30003, 30017]);
        let moved: PortRange = "30003-30100".parse().unwrap();
        assert_eq!(PortSet::decode(moved, &object).iter().collect::<Vec<_>>(), [30003, 30017]);
        assert_eq!(PortSet::decode(range, &Value::Null), PortSet::new(range));
    }

    #[test]
    fn ports_are_taken_once_the_static_band_last() {
        let range: PortRange = "30000-30031".parse().unwrap();
        let mut operation = PortOperation::new(PortSet::new(range), false);
        assert_eq!(operation.allocate(30020), Ok(()));
        assert_eq!(operation.allocate(30020), Err(PortError::Allocated));
        assert_eq!(operation.allocate(40000), Err(PortError::NotInRange(range)));
        let given: Vec<i64> = std::iter::from_fn(|| operation.allocate_next().ok()).collect();
        assert_eq!(given.len(), 31);
        assert!(given[..15].iter().all(|port| *port >= 30016), "{given:?}");
        assert!(given[15..].iter().all(|port| *port < 30016), "{given:?}");
    }

    #[test]
    fn a_dry_run_makes_ports_up() {
        let mut ports = PortSet::new(PortRange::default());
        ports.set(30011, true);
        let mut operation = PortOperation::new(ports, true);
        assert_eq!(operation.allocate(30011), Err(PortError::Allocated));
        assert_eq!(operation.allocate(7), Ok(()));
        assert_eq!(operation.allocate_next(), Ok(8));
        let mut operation = PortOperation::new(PortSet::new(PortRange::default()), true);
        assert_eq!((operation.allocate_next(), operation.allocate_next()), (Ok(32769), Ok(32770)));
    }
}
