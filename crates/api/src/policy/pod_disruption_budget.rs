//! Pod disruption budgets: the number of concurrent evictions of a workload's pods.

mod strategy;

use super::{
    GROUP,
    pod_disruption_budget_table::{cells, columns},
};
use crate::declare::Declare;
use pintle_registry::Resource;

/// The declaration of the resource.
pub fn resource() -> Resource {
    GROUP
        .namespaced("PodDisruptionBudget", "poddisruptionbudgets")
        .prints(columns, cells)
        .short_names(["pdb"])
        .ruled(strategy::PodDisruptionBudgetStrategy)
        .status(strategy::StatusStrategy)
}
