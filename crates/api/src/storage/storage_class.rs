//! Kinds of storage.

use super::GROUP;
use crate::declare::Declare;
use pintle_registry::Resource;

/// The declaration.
pub fn resource() -> Resource {
    GROUP.cluster("StorageClass", "storageclasses").short_names(["sc"])
}
