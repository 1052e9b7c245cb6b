//! `batch`: workloads that run to completion.

pub mod cron_job;
mod group;
pub mod job;

use pintle_registry::Resource;

/// The resources of the group.
pub fn resources() -> Vec<Resource> {
    vec![cron_job::resource(), job::resource()]
}
