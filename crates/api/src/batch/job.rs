//! Jobs: pods that run to completion.

mod indexes;
mod policies;
pub(crate) mod spec;
mod status;
mod strategy;
mod table;

use super::group::GROUP;
use crate::declare::Declare;
use crate::workload::{WorkloadStatusStrategy, WorkloadStrategy};
use pintle_go_forms::quote;
use pintle_machinery::ValueExt;
use pintle_registry::{Resource, SelectableField};

/// The declaration of the resource.
pub fn resource() -> Resource {
    GROUP
        .namespaced("Job", "jobs")
        .prints(table::columns, table::cells)
        .categories(["all"])
        .ruled(WorkloadStrategy(strategy::Job))
        .status(WorkloadStatusStrategy(strategy::Job))
        .selectable([SelectableField {
            value: |job, _| job.i64_at("status.succeeded").unwrap_or_default().to_string(),
            ..SelectableField::new("status.successful")
        }])
        .refuses_fields(|_, name| format!("field label {} not supported for Job", quote(name)))
}
