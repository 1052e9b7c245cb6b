//! Compares allocated node ports with services.

use super::{cluster_ips::Repairs, metrics::Difference};
use crate::{
    event_recorder::{Warning, referenced},
    objects::{core, create_if_missing, write_options},
};
use jiff::Timestamp;
use pintle_api::core::service::{
    PortRange, PortSet, RANGE_ALLOCATION_NAME, allocated_node_ports, node_port_allocations,
    publish_allocated_ports, range_allocation_object,
};
use pintle_machinery::{Status, StatusReason, Value, ValueExt, meta::ObjectMeta};
use std::{collections::BTreeMap, ops::ControlFlow};

/// The number of runs after which a port that no service holds is released.
const LOOKS_BEFORE_RELEASE: u32 = 3;

/// The largest number of events that one run records.
const MAX_WARNINGS: usize = 1000;

/// Counts the runs in which a port looked leaked.
#[derive(Debug, Default)]
pub(super) struct NodePortRepair {
    looks: BTreeMap<i64, u32>,
}

impl NodePortRepair {
    /// Allocates ports that services hold without an allocation, and releases those that no service has held for some
    /// runs.
    pub(super) async fn run_once(
        &mut self,
        repairs: Repairs<'_>,
        range: PortRange,
        now: Timestamp,
    ) -> Result<(), Status> {
        let Repairs { registry, metrics, events } = repairs;
        let resource = node_port_allocations();
        let empty = range_allocation_object(&PortSet::new(range));
        create_if_missing(registry, &resource, "", empty).await?;
        // Read before the services: a concurrent allocation makes the write below conflict.
        let stored = registry.get(&resource, "", RANGE_ALLOCATION_NAME).await?;

        let taken = PortSet::decode(range, &stored);
        let mut rebuilt = PortSet::new(range);
        let mut warnings = Vec::new();
        let mut look = |service: Value| {
            for port in allocated_node_ports(&service) {
                let mut warn = |reason, note| {
                    if warnings.len() < MAX_WARNINGS {
                        warnings
                            .push((referenced(&service), Warning { reason, action: "PortAllocation", note }));
                    }
                };
                if rebuilt.contains(port) {
                    metrics.found(Difference::Duplicate);
                    warn(
                        "PortAlreadyAllocated",
                        format!("Port {port} was assigned to multiple services; please recreate service"),
                    );
                } else if range.offset(port).is_some() && !taken.contains(port) {
                    metrics.found(Difference::Unallocated);
                    warn("PortNotAllocated", format!("Port {port} is not allocated; repairing"));
                }
                if range.offset(port).is_none() {
                    metrics.found(Difference::OutOfRange);
                    warn(
                        "PortOutOfRange",
                        format!("Port {port} is not within the port range {range}; please recreate service"),
                    );
                    tracing::warn!(
                        port,
                        service = format!("{}/{}", service.namespace(), service.name()),
                        %range,
                        "a node port is outside the range of this server"
                    );
                }
                rebuilt.set(port, true);
            }
            ControlFlow::Continue(())
        };
        registry.visit(&core("services"), "", &mut look).await?;
        for (service, warning) in warnings {
            events.warn(registry, &service, now, warning).await;
        }
        let mut looks = BTreeMap::new();
        for port in taken.iter().filter(|port| !rebuilt.contains(*port)).collect::<Vec<_>>() {
            let count = self.looks.get(&port).copied().unwrap_or_default() + 1;
            if count < LOOKS_BEFORE_RELEASE {
                rebuilt.set(port, true);
                looks.insert(port, count);
            } else {
                metrics.found(Difference::Leak);
                tracing::info!(port, "released a leaked node port");
            }
        }
        publish_allocated_ports(&rebuilt);
        let wanted = range_allocation_object(&rebuilt);
        let seen = stored.resource_version().to_owned();
        let replace = |mut object: Value| {
            if object.resource_version() != seen {
                let why = "ports were taken during the repair";
                return Err(Status::conflict(&node_port_allocations(), RANGE_ALLOCATION_NAME, why));
            }
            for member in ["range", "data"] {
                object.set(member, wanted.str_at(member));
            }
            Ok(object)
        };
        let result =
            registry.update(&resource, "", RANGE_ALLOCATION_NAME, Box::new(replace), write_options()).await;
        match result {
            // The next run reads the new state.
            Err(status) if status.reason == StatusReason::Conflict => {}
            result => drop(result?),
        }
        self.looks = looks;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{event_recorder::EventRecorder, repair::metrics::RepairMetrics};
    use pintle_machinery::json;
    use pintle_registry::{
        Registry, WriteOptions,
        testing::{MemoryRegistry, now},
    };

    #[test]
    fn held_ports_are_taken_at_once_and_leaks_released_after_a_while() {
        let (registry, range) = (MemoryRegistry::default(), PortRange::default());
        let mut leaked = PortSet::new(range);
        leaked.set(30100, true);
        let object = range_allocation_object(&leaked);
        now(registry.create(&node_port_allocations(), "", object, WriteOptions::default())).unwrap();
        let service = json!({
            "metadata": {"name": "a"}, "spec": {"type": "NodePort", "ports": [{"port": 80, "nodePort": 30007}]}
        });
        now(registry.create(&core("services"), "n", service, WriteOptions::default())).unwrap();

        let taken = || {
            let stored = registry.stored(&node_port_allocations(), "", RANGE_ALLOCATION_NAME).unwrap();
            PortSet::decode(range, &stored).iter().collect::<Vec<_>>()
        };
        let mut repair = NodePortRepair::default();
        let (metrics, events) = (RepairMetrics::of_node_ports().unwrap(), EventRecorder::new("c", "h"));
        let repairs = Repairs { registry: &registry, metrics: &metrics, events: &events };
        let at = Timestamp::UNIX_EPOCH;
        for expected in [vec![30007, 30100], vec![30007, 30100], vec![30007]] {
            now(repair.run_once(repairs, range, at)).unwrap();
            assert_eq!(taken(), expected);
        }
        assert_eq!((metrics.count(Difference::Leak), metrics.count(Difference::Unallocated)), (1, 1));
        let revision = registry.revision();
        now(repair.run_once(repairs, range, at)).unwrap();
        assert_eq!(registry.revision(), revision);
        let told = now(registry.list(&core("events"), "n")).unwrap();
        let told: Vec<&str> = told.iter().map(|event| event.str_at("message")).collect();
        assert_eq!(told, ["Port 30007 is not allocated; repairing"]);
    }

    #[test]
    fn a_port_of_two_protocols_is_no_duplicate_and_one_of_two_services_is() {
        let registry = MemoryRegistry::default();
        let port = |protocol: &str| json!({"port": 53, "protocol": protocol, "nodePort": 30007});
        let of = |name: &str, ports: Vec<Value>| json!({"metadata": {"name": name}, "spec": {"type": "NodePort", "ports": ports}});
        let (metrics, events) = (RepairMetrics::of_node_ports().unwrap(), EventRecorder::new("c", "h"));
        let repairs = Repairs { registry: &registry, metrics: &metrics, events: &events };
        let mut repair = NodePortRepair::default();
        let rows = [(of("a", vec![port("TCP"), port("UDP")]), 0), (of("b", vec![port("SCTP")]), 1)];
        for (service, expected) in rows {
            now(registry.create(&core("services"), "n", service, WriteOptions::default())).unwrap();
            now(repair.run_once(repairs, PortRange::default(), Timestamp::UNIX_EPOCH)).unwrap();
            assert_eq!(metrics.count(Difference::Duplicate), expected);
        }
    }
}
