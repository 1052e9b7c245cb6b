//! How many pods of a workload may be evicted at a time.

use super::{
    GROUP,
    pod_disruption_budget_table::{cells, columns},
};
use crate::declare::Declare;
use pintle_registry::{DefaultStrategy, Resource};

/// The declaration.
pub fn resource() -> Resource {
    GROUP
        .namespaced("PodDisruptionBudget", "poddisruptionbudgets")
        .prints(columns, cells)
        .short_names(["pdb"])
        .status(DefaultStrategy)
}
