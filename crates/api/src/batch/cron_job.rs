//! Jobs by the clock.

use super::{
    GROUP,
    cron_job_table::{cells, columns},
};
use crate::declare::Declare;
use pintle_registry::{DefaultStrategy, Resource};

/// The declaration.
pub fn resource() -> Resource {
    GROUP
        .namespaced("CronJob", "cronjobs")
        .prints(columns, cells)
        .short_names(["cj"])
        .categories(["all"])
        .status(DefaultStrategy)
}
