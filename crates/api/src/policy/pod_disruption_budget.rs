//! How many pods of a workload may be evicted at a time.

use super::GROUP;
use crate::declare::Declare;
use pintle_registry::{DefaultStrategy, Resource};

/// The declaration.
pub fn resource() -> Resource {
    GROUP
        .namespaced("PodDisruptionBudget", "poddisruptionbudgets")
        .short_names(["pdb"])
        .status(DefaultStrategy)
}
