//! How much storage is left where.

mod strategy;

use super::GROUP;
use crate::declare::Declare;
use pintle_registry::Resource;

/// The declaration.
pub fn resource() -> Resource {
    GROUP.namespaced("CSIStorageCapacity", "csistoragecapacities").ruled(strategy::CapacityStrategy)
}
