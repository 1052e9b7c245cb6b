//! Workloads: the groups of pods that a controller makes.

mod strategy;
mod table;

use super::group::V1ALPHA2;
use crate::declare::Declare;
use pintle_feature_gates::Gate;
use pintle_registry::Resource;

/// The declaration of the resource.
pub fn resource() -> Resource {
    V1ALPHA2
        .namespaced("Workload", "workloads")
        .prints(table::columns, table::cells)
        .ruled(strategy::WorkloadStrategy)
        .behind(Gate::GenericWorkload)
}
