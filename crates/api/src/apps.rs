//! `apps`: workloads that keep pods running.

pub mod controller_revision;
pub(crate) mod controller_revision_table;
pub mod daemon_set;
pub(crate) mod daemon_set_table;
pub mod deployment;
pub mod replica_set;
pub mod stateful_set;
pub(crate) mod stateful_set_table;

use crate::declare::Group;
use pintle_registry::Resource;

pub(crate) const GROUP: Group = Group::new("apps", "v1", "k8s.io/api/apps/v1");

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
