//! Stateful sets: replicas with stable identities.

mod strategy;
mod table;

use super::group::GROUP;
use crate::declare::Declare;
use crate::workload::{WorkloadStatusStrategy, WorkloadStrategy};
use pintle_registry::Resource;

/// The declaration of the resource.
pub fn resource() -> Resource {
    GROUP
        .namespaced("StatefulSet", "statefulsets")
        .prints(table::columns, table::cells)
        .short_names(["sts"])
        .categories(["all"])
        .plain_integers(&["spec.replicas"])
        .scale()
        .ruled(WorkloadStrategy(strategy::StatefulSet))
        .status(WorkloadStatusStrategy(strategy::StatefulSet))
}
