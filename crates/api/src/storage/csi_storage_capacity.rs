//! How much storage is left where.

use super::GROUP;
use pintle_registry::Resource;

/// The declaration.
pub fn resource() -> Resource {
    GROUP.namespaced("CSIStorageCapacity", "csistoragecapacities")
}
