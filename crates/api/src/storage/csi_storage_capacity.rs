//! How much storage is left where.

use super::GROUP;
use crate::declare::Declare;
use crate::plain::PlainStrategy;
use pintle_registry::Resource;

/// The declaration.
pub fn resource() -> Resource {
    GROUP
        .namespaced("CSIStorageCapacity", "csistoragecapacities")
        .ruled(PlainStrategy::NEW.needs_resource_version())
}
