//! Deployments: replicas with rolling updates of their template.

mod strategy;
mod table;

use super::group::GROUP;
use crate::declare::Declare;
use crate::workload::{WorkloadStatusStrategy, WorkloadStrategy};
use pintle_registry::Resource;

/// The declaration of the resource.
pub fn resource() -> Resource {
    GROUP
        .namespaced("Deployment", "deployments")
        .short_names(["deploy"])
        .categories(["all"])
        .plain_integers(&["spec.replicas"])
        .scale()
        .prints(table::columns, table::cells)
        .ruled(WorkloadStrategy(strategy::Deployment))
        .status(WorkloadStatusStrategy(strategy::Deployment))
}
