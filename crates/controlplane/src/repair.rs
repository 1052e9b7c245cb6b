//! What crashes and races leave behind: addresses and ports that no service holds any more, or that a service holds
//! and nothing says so.
//!
//! Taking comes before the service is stored and giving back after it is gone, so what looks leaked may be a write that
//! is under way. Hence leaks are only taken back after a while.

mod cluster_ips;
mod node_ports;

pub(crate) use cluster_ips::repair as cluster_ips;
pub(crate) use node_ports::NodePortRepair;
