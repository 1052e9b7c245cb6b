//! Pod groups: pods that are scheduled together.

mod strategy;
mod table;
mod validation;

use super::group::V1ALPHA2;
use crate::declare::Declare;
use pintle_feature_gates::Gate;
use pintle_registry::Resource;

/// The declaration of the resource.
pub fn resource() -> Resource {
    V1ALPHA2
        .namespaced("PodGroup", "podgroups")
        .prints(table::columns, table::cells)
        .ruled(strategy::PodGroupStrategy)
        .status_without_table(strategy::PodGroupStatusStrategy)
        .behind(Gate::GenericWorkload)
}
