//! Cron jobs: jobs by schedule.

mod schedule;
mod strategy;

use super::{
    GROUP,
    cron_job_table::{cells, columns},
};
use crate::declare::Declare;
use pintle_registry::Resource;

/// The declaration of the resource.
pub fn resource() -> Resource {
    GROUP
        .namespaced("CronJob", "cronjobs")
        .prints(columns, cells)
        .short_names(["cj"])
        .categories(["all"])
        .ruled(strategy::CronJobStrategy)
        .status(strategy::StatusStrategy)
}
