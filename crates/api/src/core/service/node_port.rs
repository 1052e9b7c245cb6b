//! Node ports: bits of one `RangeAllocation` object, changed by compare-and-swap.
//!
//! The object is kube-apiserver's own (`ranges/servicenodeports` in the store), so that both can serve one store. Its
//! `data` is a big-endian number whose bit n stands for the n-th port of `range`.

use super::network::{PortRange, shuffled_start};
use base64::{Engine, engine::general_purpose::STANDARD};
use pintle_machinery::{GroupResource, Status, StatusReason, Value, ValueExt};
use pintle_registry::{Registry, WriteOptions};
use serde_json::json;
use std::collections::HashSet;
use std::fmt;

/// The name of the object that holds the node ports.
pub const RANGE_ALLOCATION_NAME: &str = "servicenodeports";

/// The resource of that object, which no client is served.
pub fn node_port_allocations() -> GroupResource {
    GroupResource::new("", "servicenodeportallocations")
}

/// The object that says that these ports are taken.
pub fn range_allocation_object(ports: &PortSet) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "RangeAllocation",
        "metadata": {"name": RANGE_ALLOCATION_NAME},
        "range": ports.range.to_string(),
        "data": ports.encode(),
    })
}

/// The ports of a range that are taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortSet {
    range: PortRange,
    taken: Vec<bool>,
}

impl PortSet {
    /// None taken.
    pub fn new(range: PortRange) -> PortSet {
        PortSet { range, taken: vec![false; range.size()] }
    }

    /// The ports of `range` that are taken in the stored object; the object may be of another range, when the server's
    /// options were changed.
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

    /// Whether the port is taken; one outside the range is not.
    pub fn contains(&self, port: i64) -> bool {
        self.range.offset(port).and_then(|offset| self.taken.get(offset)).is_some_and(|taken| *taken)
    }

    /// Takes a port or gives it back; outside the range nothing happens.
    pub fn set(&mut self, port: i64, taken: bool) {
        if let Some(place) = self.range.offset(port).and_then(|offset| self.taken.get_mut(offset)) {
            *place = taken;
        }
    }

    /// All ports that are taken.
    pub fn iter(&self) -> impl Iterator<Item = i64> + '_ {
        let taken = self.taken.iter().enumerate().filter(|(_, taken)| **taken);
        taken.map(|(offset, _)| i64::from(self.range.port(offset)))
    }

    /// A free port, from a random place on, and of the static band only when no other is free.
    fn free_port(&self) -> Option<i64> {
        let (band, size) = (self.range.static_band() as u128, self.range.size() as u128);
        let mut candidates = shuffled_start(band, size).chain(shuffled_start(0, band));
        let is_free = |offset: &usize| self.taken.get(*offset) == Some(&false);
        let offset = candidates.find_map(|offset| usize::try_from(offset).ok().filter(is_free))?;
        Some(self.range.port(offset).into())
    }
}

/// Why a port is not given, in the words clients see.
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

/// What one write takes.
pub(super) struct PortOperation {
    ports: PortSet,
    dry_run: bool,
    /// In the order in which they were taken.
    allocated: Vec<i64>,
    taken: HashSet<i64>,
    /// The highest port that was taken.
    highest: Option<i64>,
}

impl PortOperation {
    fn new(ports: PortSet, dry_run: bool) -> PortOperation {
        PortOperation { ports, dry_run, allocated: Vec::new(), taken: HashSet::new(), highest: None }
    }

    /// Takes this port. A dry run does not look at the range.
    pub(super) fn allocate(&mut self, port: i64) -> Result<(), PortError> {
        if !self.dry_run && self.ports.range.offset(port).is_none() {
            return Err(PortError::NotInRange(self.ports.range));
        }
        if self.ports.contains(port) || self.taken.contains(&port) {
            return Err(PortError::Allocated);
        }
        self.take(port);
        Ok(())
    }

    fn take(&mut self, port: i64) {
        self.ports.set(port, true);
        self.allocated.push(port);
        self.taken.insert(port);
        self.highest = self.highest.max(Some(port));
    }

    /// Takes any port. A dry run makes one up that is none a node has.
    pub(super) fn allocate_next(&mut self) -> Result<i64, PortError> {
        let port = match self.dry_run {
            true => self.highest.unwrap_or(32768).max(0) + 1,
            false => self.ports.free_port().ok_or(PortError::Full)?,
        };
        self.take(port);
        Ok(port)
    }
}

/// Lets `assign` take ports for an object, all or none of them, and answers with those that were taken. `assign` is
/// called again, with the object as it was, when another server came first.
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
    let mut allocated = Vec::new();
    update(registry, range, |ports| {
        let mut candidate = before.clone();
        let mut operation = PortOperation::new(ports, false);
        assign(&mut candidate, &mut operation)?;
        *object = candidate;
        allocated = operation.allocated;
        Ok(operation.ports)
    })
    .await?;
    Ok(allocated)
}

/// Gives ports back. A failure leaves them to the repair controller: the caller's write has happened.
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
        let swap = |mut object: Value| {
            let ports = change(PortSet::decode(range, &object))?;
            object.set("range", range.to_string());
            object.set("data", ports.encode());
            Ok(object)
        };
        let options = WriteOptions::default();
        match registry.update(&resource, "", RANGE_ALLOCATION_NAME, Box::new(swap), options).await {
            Ok(_) => return Ok(()),
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
