//! Repairs address and port allocations after crashes and races: releases allocations that no service holds, and adds
//! missing allocations of services.
//!
//! An address is allocated before its service is stored and released after the service is deleted, so an apparent leak
//! may be a write in progress. Leaks are therefore released only after a delay.

mod cluster_ips;
mod node_ports;

pub(crate) use cluster_ips::repair as cluster_ips;
pub(crate) use node_ports::NodePortRepair;
