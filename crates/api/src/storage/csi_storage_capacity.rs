//! Storage capacities by class and topology.

mod strategy;

use super::group::GROUP;
use crate::declare::Declare;
use pintle_registry::Resource;

/// The declaration of the resource.
pub fn resource() -> Resource {
    GROUP.namespaced("CSIStorageCapacity", "csistoragecapacities").ruled(strategy::CapacityStrategy)
}
