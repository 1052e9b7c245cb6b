//! `apps`: workloads that keep pods running.

pub mod controller_revision;
pub mod daemon_set;
pub mod deployment;
mod group;
pub mod replica_set;
pub mod stateful_set;

use pintle_registry::Resource;

/// The resources of the group.
pub fn resources() -> Vec<Resource> {
    vec![
        controller_revision::resource(),
        daemon_set::resource(),
        deployment::resource(),
        replica_set::resource(),
        stateful_set::resource(),
    ]
}
