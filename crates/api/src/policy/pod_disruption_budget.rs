//! Pod disruption budgets: the number of concurrent evictions of a workload's pods.

mod strategy;
mod table;

use super::group::GROUP;
use crate::declare::Declare;
use pintle_registry::Resource;

/// The declaration of the resource.
pub fn resource() -> Resource {
    GROUP
        .namespaced("PodDisruptionBudget", "poddisruptionbudgets")
        .prints(table::columns, table::cells)
        .short_names(["pdb"])
        .ruled(strategy::PodDisruptionBudgetStrategy)
        .status(strategy::StatusStrategy)
}
