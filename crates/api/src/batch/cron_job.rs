//! Cron jobs: jobs by schedule.

mod schedule;
mod strategy;
mod table;

use super::group::GROUP;
use crate::declare::Declare;
use crate::workload::{WorkloadStatusStrategy, WorkloadStrategy};
use pintle_registry::Resource;

/// The declaration of the resource.
pub fn resource() -> Resource {
    GROUP
        .namespaced("CronJob", "cronjobs")
        .prints(table::columns, table::cells)
        .short_names(["cj"])
        .categories(["all"])
        .ruled(WorkloadStrategy(strategy::CronJob))
        .status(WorkloadStatusStrategy(strategy::CronJob))
}
