//! Claims to storage.

use super::GROUP;
use crate::declare::Declare;
use pintle_registry::{DefaultStrategy, Resource};

/// The declaration.
pub fn resource() -> Resource {
    GROUP
        .namespaced("PersistentVolumeClaim", "persistentvolumeclaims")
        .short_names(["pvc"])
        .status(DefaultStrategy)
}
