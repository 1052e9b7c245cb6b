//! `batch`: workloads that run to completion.

pub mod cron_job;
pub(crate) mod cron_job_table;
pub mod job;
pub(crate) mod job_table;

use crate::declare::Group;
use pintle_registry::Resource;

pub(crate) const GROUP: Group = Group::new("batch", "v1", "k8s.io/api/batch/v1");

/// The resources of the group.
pub fn resources() -> Vec<Resource> {
    vec![cron_job::resource(), job::resource()]
}
